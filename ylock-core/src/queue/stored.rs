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
        let owner = u128::from_be_bytes(self.owner.to_bytes());
        write!(text, "{} {:?} {owner:032x} {} ", self.mode, self.id, self.ticket.get())?;
        let (lease, expires) = (self.lease.as_nanos(), self.expires.as_nanos());
        write!(text, "{} {lease} {} {expires} ", self.fairness, self.since)?;
        write_if_any(text, self.token.map(StoreToken::get))?;
        text.push_str(if self.revoked { "revoked " } else { "- " });
        match self.behind {
            Some(grant) => write!(text, "{grant:?} ")?,
            None => text.push_str("- "),
        }
        writeln!(text, "{} {}", self.kept, self.client.as_str())
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

fn write_if_any(text: &mut String, value: Option<impl Display>) -> fmt::Result {
    match value {
        Some(value) => write!(text, "{value} "),
        None => text.write_str("- "),
    }
}

fn read_mode(text: &str) -> Option<Mode> {
    Mode::ALL.iter().copied().find(|mode| mode.as_str() == text)
}

fn read_id(text: &str) -> Option<AcquisitionId> {
    read_hex(text).map(AcquisitionId::from_u128)
}

fn read_hex(text: &str) -> Option<u128> {
    u128::from_str_radix(text, 16).ok()
}

fn read_moment(text: &str) -> Option<Moment> {
    text.parse().ok().map(Moment::from_nanos)
}
