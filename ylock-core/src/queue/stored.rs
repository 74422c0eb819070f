//! A queue as text: for engines that keep all contenders of a key in one place which other processes read, and for people who look there.
//!
//! A line for each contender, its fields parted by blanks, the name of its client at the end because that may have blanks. What has no value
//! is `-`.

use std::fmt::{self, Display, Write};
use std::str::FromStr;
use std::time::Duration;

use smallvec::SmallVec;

use super::{Contender, Queue};
use crate::client_name::ClientName;
use crate::engine::{AcquisitionId, Ticket};
use crate::environment::Moment;
use crate::mode::Mode;
use crate::options::Fairness;
use crate::owner::Owner;
use crate::token::StoreToken;

/// The first word of the line of an acquisition that was undone.
const UNDONE: &str = "undone";

impl<T: Display> Queue<T> {
    /// Appends the queue to `text`, in whole lines.
    pub fn write_to(&self, text: &mut String) {
        for contender in &self.contenders {
            let written = contender.write_line(text);
            debug_assert!(written.is_ok(), "a text has room");
        }
        for (id, until) in &self.undone {
            let written = writeln!(text, "{UNDONE} {id:?} {}", until.as_nanos());
            debug_assert!(written.is_ok(), "a text has room");
        }
    }
}

impl<T: FromStr> Queue<T> {
    /// Reads a queue from the lines that [`write_to`](Self::write_to) has written; `None` if they are not such lines.
    pub fn read(text: &str) -> Option<Self> {
        let (mut contenders, mut undone) = (SmallVec::new(), Vec::new());
        for line in text.lines() {
            match line.split_once(' ')? {
                (UNDONE, rest) => {
                    let (id, until) = rest.split_once(' ')?;
                    undone.push((read_id(id)?, read_moment(until)?));
                }
                _ => contenders.push(Contender::read_line(line)?),
            }
        }
        Some(Self { contenders, undone, freed: false })
    }
}

impl<T: Display> Contender<T> {
    fn write_line(&self, text: &mut String) -> fmt::Result {
        text.push_str(self.mode.as_str());
        push_hex(text, self.id.as_u128());
        push_hex(text, u128::from_be_bytes(self.owner.to_bytes()));
        let lease = u64::try_from(self.lease.as_nanos()).unwrap_or(u64::MAX);
        let expires = self.expires.as_nanos();
        write!(text, " {} {} {lease} {} {expires} ", self.ticket.get(), self.fairness, self.since)?;
        match self.token {
            Some(token) => write!(text, "{}", token.get())?,
            None => text.push('-'),
        }
        text.push_str(if self.revoked { " revoked" } else { " -" });
        match self.behind {
            Some(grant) => push_hex(text, grant.as_u128()),
            None => text.push_str(" -"),
        }
        writeln!(text, " {} {}", self.kept, self.client.as_str())
    }
}

impl<T: FromStr> Contender<T> {
    fn read_line(line: &str) -> Option<Self> {
        // The last one with all that follows.
        let mut fields = line.splitn(13, ' ');
        let mut next = || fields.next();
        Some(Self {
            mode: read_mode(next()?)?,
            id: read_id(next()?)?,
            owner: Owner::from_bytes(read_hex(next()?)?.to_be_bytes()),
            ticket: Ticket::from_number(next()?.parse().ok()?),
            fairness: next()?.parse::<Fairness>().ok()?,
            lease: Duration::from_nanos(next()?.parse().ok()?),
            since: next()?.parse().ok()?,
            expires: read_moment(next()?)?,
            token: match next()? {
                "-" => None,
                number => Some(StoreToken::new(number.parse().ok()?)?),
            },
            revoked: match next()? {
                "-" => false,
                "revoked" => true,
                _ => return None,
            },
            behind: match next()? {
                "-" => None,
                id => Some(read_id(id)?),
            },
            kept: next()?.parse().ok()?,
            client: ClientName::stored(next()?),
        })
    }
}

/// Appends a blank and 32 digits. By hand, and below too: identities are most of a line, and the standard library takes most of the time for them.
fn push_hex(text: &mut String, number: u128) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut digits = [b' '; 33];
    for (byte, pair) in number.to_be_bytes().iter().zip(digits[1..].as_chunks_mut::<2>().0) {
        *pair = [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
    }
    text.push_str(std::str::from_utf8(&digits).unwrap_or_default());
}

fn read_mode(text: &str) -> Option<Mode> {
    Mode::ALL.iter().copied().find(|mode| mode.as_str() == text)
}

fn read_id(text: &str) -> Option<AcquisitionId> {
    read_hex(text).map(AcquisitionId::from_u128)
}

fn read_hex(text: &str) -> Option<u128> {
    if text.is_empty() || text.len() > 32 {
        return None;
    }
    let (high, low) = text.as_bytes().split_at(text.len().saturating_sub(16));
    Some(u128::from(read_half(high)?) << 64 | u128::from(read_half(low)?))
}

fn read_half(digits: &[u8]) -> Option<u64> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(u64::from);
    digits.iter().try_fold(0, |number, byte| Some(number << 4 | digit(*byte)?))
}

fn read_moment(text: &str) -> Option<Moment> {
    text.parse().ok().map(Moment::from_nanos)
}
