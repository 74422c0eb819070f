//! A text in a file, replaced in such a way that a process which is killed in the middle leaves the old text or the new one.
//!
//! A file has two slots, a page each: a header, and behind it the text. The newest header says which slot has the text. The next text goes
//! into the *other* slot, the header after the text; so until its last write has happened, nothing has. A text that is too long for the page
//! is further back in the file, with nothing between: files may have holes.
//!
//! A header or a text that is damaged is an error and never an older text: in that the lock might be free.

use std::os::fd::AsFd;

use rustix::io::{Errno, pread, pwrite, retry_on_intr};

use crate::stop_point;

const PAGE: usize = 4096;
/// Where the texts of the two slots are that do not fit into their pages.
const FAR: [u64; 2] = [1 << 24, 2 << 24];
/// `sequence length checksum-of-the-text checksum-of-this-header`, in hexadecimal digits.
const HEADER: usize = 44;
/// The part of a header that its checksum is of.
const CHECKED: usize = 35;
/// The longest text. Some hundred thousand contenders.
const MAX_BYTES: usize = 1 << 24;

/// What is in a file, or why that is not known.
#[derive(Debug)]
pub(super) enum Failed {
    /// Neither this engine nor a process that was killed has written this.
    Damaged(&'static str),
    TooLong,
    System(Errno),
}

impl From<Errno> for Failed {
    fn from(errno: Errno) -> Self {
        Self::System(errno)
    }
}

/// Which slot has the text, and what the next header says.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Slots {
    newest: Option<(usize, Header)>,
    /// True if the other slot has been written before, so that writing it takes no space that may not be there.
    has_both: bool,
}

#[derive(Clone, Copy, Debug)]
struct Header {
    sequence: u64,
    length: usize,
    checksum: u32,
}

impl Slots {
    /// Reads the newest text; an empty one from a file that has none yet.
    pub(super) fn read(file: impl AsFd) -> Result<(Self, String), Failed> {
        let mut pages = [0; 2 * PAGE];
        let filled = read_at(&file, &mut pages, 0)?;
        let (first, second) = pages[..filled].split_at(filled.min(PAGE));
        let headers = [Header::read(first)?, Header::read(second)?];
        let has_both = headers.iter().all(Option::is_some);
        let newest = headers.into_iter().enumerate().filter_map(|(slot, header)| Some((slot, header?)));
        let Some((slot, header)) = newest.max_by_key(|(_, header)| header.sequence) else {
            // The process that made the file has not got further, or was killed before it did.
            return Ok((Self::default(), String::new()));
        };
        let text = match header.is_far() {
            true => {
                let mut text = vec![0; header.length];
                let filled = read_at(&file, &mut text, FAR[slot])?;
                text.truncate(filled);
                text
            }
            false => [first, second][slot].iter().skip(HEADER).take(header.length).copied().collect(),
        };
        if text.len() != header.length || crc32fast::hash(&text) != header.checksum {
            return Err(Failed::Damaged("its text is not the one that was written"));
        }
        let text = String::from_utf8(text).map_err(|_| Failed::Damaged("its text is no text"))?;
        Ok((Self { newest: Some((slot, header)), has_both }, text))
    }

    /// Returns whether a text was ever written.
    pub(super) fn is_empty(&self) -> bool {
        self.newest.is_none()
    }

    /// Writes the next text.
    pub(super) fn write(self, file: impl AsFd, text: &str) -> Result<(), Failed> {
        if text.len() > MAX_BYTES {
            return Err(Failed::TooLong);
        }
        let (slot, sequence) = self.newest.map_or((0, 1), |(slot, header)| (1 - slot, header.sequence + 1));
        let header = Header { sequence, length: text.len(), checksum: crc32fast::hash(text.as_bytes()) };
        match header.write(&file, slot, text) {
            // Nothing waits for this lock, and so nothing has written the second slot. Holders must be able to renew and to release all the same.
            Err(Failed::System(Errno::NOSPC | Errno::DQUOT))
                if !self.has_both && !header.is_far() && !self.is_empty() =>
            {
                header.write_at_once(&file, 1 - slot, text)
            }
            done => done,
        }
    }
}

impl Header {
    /// Reads a header from the beginning of a slot. `None` if none was ever written there.
    fn read(slot: &[u8]) -> Result<Option<Self>, Failed> {
        let header = &slot[..slot.len().min(HEADER)];
        if header.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        Self::parse(header).map(Some).ok_or(Failed::Damaged("a header is not one that was written"))
    }

    fn parse(header: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(header).ok().filter(|text| text.len() == HEADER)?;
        let mut fields = text.strip_suffix('\n')?.split(' ');
        let mut next = || u64::from_str_radix(fields.next()?, 16).ok();
        let (sequence, length, checksum, own) = (next()?, next()?, next()?, next()?);
        let is_own = own == u64::from(crc32fast::hash(&header[..CHECKED]));
        is_own.then_some(())?;
        Some(Self { sequence, length: length.try_into().ok()?, checksum: checksum.try_into().ok()? })
    }

    fn is_far(&self) -> bool {
        self.length > PAGE - HEADER
    }

    fn to_text(self) -> String {
        let Self { sequence, length, checksum } = self;
        let text = format!("{sequence:016x} {length:08x} {checksum:08x} ");
        let own = crc32fast::hash(&text.as_bytes()[..CHECKED]);
        format!("{text}{own:08x}\n")
    }

    /// Writes text and header. The header last: with it, and not before, the text counts.
    fn write(self, file: impl AsFd, slot: usize, text: &str) -> Result<(), Failed> {
        let start = (slot * PAGE) as u64;
        let of_text = if self.is_far() { FAR[slot] } else { start + HEADER as u64 };
        write_at(&file, text.as_bytes(), of_text)?;
        write_at(&file, self.to_text().as_bytes(), start)
    }

    /// Writes header and text in one call, over the text that is there. The system is not interrupted in so short a write by a signal.
    fn write_at_once(self, file: impl AsFd, slot: usize, text: &str) -> Result<(), Failed> {
        write_at(&file, (self.to_text() + text).as_bytes(), (slot * PAGE) as u64)
    }
}

/// Fills `into` as far as the file goes. Returns how far that is.
fn read_at(file: impl AsFd, into: &mut [u8], from: u64) -> Result<usize, Errno> {
    let mut filled = 0;
    while filled < into.len() {
        stop_point::pass();
        match retry_on_intr(|| pread(&file, &mut into[filled..], from + filled as u64))? {
            0 => break,
            more => filled += more,
        }
    }
    Ok(filled)
}

fn write_at(file: impl AsFd, bytes: &[u8], at: u64) -> Result<(), Failed> {
    let mut written = 0;
    while written < bytes.len() {
        stop_point::pass();
        match retry_on_intr(|| pwrite(&file, &bytes[written..], at + written as u64))? {
            0 => return Err(Errno::NOSPC.into()),
            more => written += more,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
