//! A text in a file, replaced in such a way that a process which is killed in the middle leaves the old text or the new one.
//!
//! A file has two slots, half a page each: a text, and behind it, at the end of the slot, a header. The newest header says which slot has the
//! text. The next text goes into the *other* slot, header last; so until the end of it is written, nothing is. A text that is too long for a slot
//! is further back in the file, where no text of the other slot ever is.
//!
//! A header or a text that is damaged is an error and never an older text: in that the lock might be free.

use std::os::fd::AsFd;

use rustix::io::{Errno, pread, pwrite, retry_on_intr};
use rustix::process::{Resource, getrlimit};

use super::stop_point;

/// Both slots are in one page: a lock that is held takes no more memory, and can be given back also where there is no memory for a second page.
const SLOT: usize = 2048;
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
    /// A larger file would have the system end this process (`ulimit -f`).
    Limited,
    System(Errno),
}

impl From<Errno> for Failed {
    fn from(errno: Errno) -> Self {
        Self::System(errno)
    }
}

/// Which slot has the text, and what its header says.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Slots {
    newest: Option<(usize, Header)>,
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
        let mut bytes = [0; 2 * SLOT];
        read_at(&file, &mut bytes, 0)?;
        let (first, second) = bytes.split_at(SLOT);
        let slots = [first, second];
        let headers = [Header::read(first)?, Header::read(second)?];
        let newest = headers.into_iter().enumerate().filter_map(|(slot, header)| Some((slot, header?)));
        let Some((slot, header)) = newest.max_by_key(|(_, header)| header.sequence) else {
            // The process that made the file has not got further, or was killed before it did.
            return Ok((Self::default(), String::new()));
        };
        let text = match header.start() {
            Some(start) => slots[slot][start..SLOT - HEADER].to_vec(),
            None => {
                let mut text = vec![0; header.length];
                let filled = read_at(&file, &mut text, far(slot, header.length))?;
                text.truncate(filled);
                text
            }
        };
        if text.len() != header.length || crc32fast::hash(&text) != header.checksum {
            return Err(Failed::Damaged("its text is not the one that was written"));
        }
        let text = String::from_utf8(text).map_err(|_| Failed::Damaged("its text is no text"))?;
        Ok((Self { newest: Some((slot, header)) }, text))
    }

    /// Returns whether no text was ever written.
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
        header.write(&file, slot, text)
    }
}

impl Header {
    /// Reads the header of a slot. `None` if none was ever written there.
    fn read(slot: &[u8]) -> Result<Option<Self>, Failed> {
        let header = &slot[SLOT - HEADER..];
        if header.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        Self::parse(header).map(Some).ok_or(Failed::Damaged("a header is not one that was written"))
    }

    fn parse(header: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(header).ok()?;
        let mut fields = text.strip_suffix('\n')?.split(' ');
        let mut next = || u64::from_str_radix(fields.next()?, 16).ok();
        let (sequence, length, checksum, own) = (next()?, next()?, next()?, next()?);
        let is_own = own == u64::from(crc32fast::hash(&header[..CHECKED]));
        let length = usize::try_from(length).ok().filter(|length| *length <= MAX_BYTES)?;
        is_own.then_some(Self { sequence, length, checksum: checksum.try_into().ok()? })
    }

    /// Returns where the text begins in its slot; nothing if it is not there.
    fn start(&self) -> Option<usize> {
        (SLOT - HEADER).checked_sub(self.length)
    }

    fn to_text(self) -> String {
        let Self { sequence, length, checksum } = self;
        let text = format!("{sequence:016x} {length:08x} {checksum:08x} ");
        let own = crc32fast::hash(&text.as_bytes()[..CHECKED]);
        format!("{text}{own:08x}\n")
    }

    /// Writes text and header. The header last: with it, and not before, the text counts.
    fn write(self, file: impl AsFd, slot: usize, text: &str) -> Result<(), Failed> {
        let header = self.to_text();
        let begin = (slot * SLOT) as u64;
        match self.start() {
            // In one call: the system copies from the front to the back.
            Some(start) => write_at(&file, [text, &header].concat().as_bytes(), begin + start as u64),
            None => {
                let far = far(slot, text.len());
                if getrlimit(Resource::Fsize).current.is_some_and(|most| far + text.len() as u64 > most) {
                    return Err(Failed::Limited);
                }
                write_at(&file, text.as_bytes(), far)?;
                write_at(&file, header.as_bytes(), begin + (SLOT - HEADER) as u64)
            }
        }
    }
}

/// Returns where a text of this length is that does not fit into its slot. Each power of two has a room for each slot, and all rooms are apart. So a
/// file is never much longer than its text.
fn far(slot: usize, length: usize) -> u64 {
    let room = length.next_power_of_two().max(SLOT) as u64;
    (2 + slot as u64) * room
}

/// Fills `into` as far as the file goes. Returns how far that is.
fn read_at(file: impl AsFd, into: &mut [u8], from: u64) -> Result<usize, Errno> {
    stop_point::pass();
    // A file is read to its end in one call, or as far as there is room.
    retry_on_intr(|| pread(&file, &mut *into, from))
}

fn write_at(file: impl AsFd, bytes: &[u8], at: u64) -> Result<(), Failed> {
    in_parts(bytes, at, |part, at| {
        stop_point::pass();
        retry_on_intr(|| pwrite(&file, part, at))
    })
}

/// Writes everything, by calls each of which may write a part only.
fn in_parts(
    bytes: &[u8],
    at: u64,
    mut write: impl FnMut(&[u8], u64) -> Result<usize, Errno>,
) -> Result<(), Failed> {
    let mut written = 0;
    while written < bytes.len() {
        match write(&bytes[written..], at + written as u64)? {
            0 => return Err(Errno::NOSPC.into()),
            more => written += more,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
