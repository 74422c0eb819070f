//! A contender: its key, its place, and what is stored at its key.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ylock_core::engine::AcquisitionId;
use ylock_core::queue::places::Placed;
use ylock_core::{ClientName, Error, ErrorKind, Mode, Owner, Result};

use super::names::read_contender;
use super::store::Entry;

/// A contender as a look shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Contender {
    pub(crate) key: Vec<u8>,
    /// Its acquisition; zero if the look did not ask for values.
    pub(crate) id: AcquisitionId,
    pub(crate) place: i64,
    /// The mode that it has now.
    pub(crate) mode: Mode,
    /// The place in the order of arrival, if it asked for that.
    pub(crate) ticket: Option<i64>,
}

/// What is stored at a contender's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) id: AcquisitionId,
    /// The number of the claim: of one acquisition at one place.
    pub(crate) number: u64,
    pub(crate) owner: Owner,
    pub(crate) client: ClientName,
    /// The time since when the acquisition contends, in microseconds of its client's wall clock.
    pub(crate) since: i64,
    pub(crate) mode: Mode,
    pub(crate) ticket: Option<i64>,
    /// True if the lock was revoked, and its holder does not know it yet.
    pub(crate) revoked: bool,
}

impl Contender {
    /// Reads a contender. Without its value it has the mode in which it came, and no ticket.
    pub(crate) fn read(entry: &Entry) -> Result<Self> {
        let came_as = read_contender(&entry.key).ok_or_else(|| odd(&entry.key))?;
        let (id, mode, ticket) = if entry.value.is_empty() {
            (AcquisitionId::from_u128(0), came_as, None)
        } else {
            let content = Content::read(&entry.value)?;
            (content.id, content.mode, content.ticket)
        };
        Ok(Self { key: entry.key.clone(), id, place: entry.made, mode, ticket })
    }
}

impl Placed for Contender {
    fn place(&self) -> i64 {
        self.place
    }

    fn mode(&self) -> Mode {
        self.mode
    }
}

impl Content {
    pub(crate) fn write(&self) -> Vec<u8> {
        let Self { id, number, owner, client, since, mode, ticket, revoked } = self;
        let id = id.as_u128();
        let mode = if *mode == Mode::Write { 'w' } else { 'r' };
        let ticket = ticket.map_or("x".to_owned(), |ticket| ticket.to_string());
        let revoked = u8::from(*revoked);
        format!("1 {id:032x} {number:x} {owner} {since} {mode} {ticket} {revoked} {client}").into_bytes()
    }

    pub(crate) fn read(bytes: &[u8]) -> Result<Self> {
        Self::parse(bytes).ok_or_else(|| odd(bytes))
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        // The client's name is the rest: it may have blanks in it.
        let words: Vec<_> = std::str::from_utf8(bytes).ok()?.splitn(9, ' ').collect();
        let ["1", id, number, owner, since, mode, ticket, revoked, client] = words[..] else { return None };
        let id = AcquisitionId::from_u128(u128::from_str_radix(id, 16).ok()?);
        let number = u64::from_str_radix(number, 16).ok()?;
        let mode = match mode {
            "w" => Mode::Write,
            "r" => Mode::Read,
            _ => return None,
        };
        let ticket = if ticket == "x" { None } else { Some(ticket.parse().ok()?) };
        let revoked = match revoked {
            "0" => false,
            "1" => true,
            _ => return None,
        };
        let (owner, since, client) = (owner.parse().ok()?, since.parse().ok()?, ClientName::stored(client));
        Some(Self { id, number, owner, client, since, mode, ticket, revoked })
    }

    /// Returns the place of this claim, if its key is what was seen.
    pub(crate) fn place_of(entries: &[Entry], id: AcquisitionId, number: u64) -> Result<Option<i64>> {
        let Some(entry) = entries.first() else { return Ok(None) };
        let content = Self::read(&entry.value)?;
        Ok((content.id == id && content.number == number).then_some(entry.made))
    }

    pub(crate) fn since(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_micros(u64::try_from(self.since).unwrap_or_default())
    }
}

fn odd(what: &[u8]) -> Error {
    let what = String::from_utf8_lossy(what);
    let message = format!("{what:?} is stored for the lock, which is not what this version writes");
    Error::new(ErrorKind::Unexpected, message).with_engine(crate::NAME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_survives_being_written() {
        let client = ClientName::new("web 3").unwrap();
        let id = AcquisitionId::from_u128(7);
        let content = Content {
            id,
            number: 18,
            owner: Owner::new(),
            client,
            since: 5,
            mode: Mode::Write,
            ticket: Some(-7),
            revoked: true,
        };
        assert_eq!(Content::read(&content.write()).unwrap(), content);
        let content = Content { ticket: None, revoked: false, mode: Mode::Read, ..content };
        assert_eq!(Content::read(&content.write()).unwrap(), content);
    }

    #[test]
    fn what_no_client_writes_is_an_error_and_not_passed_over() {
        for odd in ["", "1", "2 7 1 x 5 w x 0 me", "1 7 1 x 5 q x 0 me"] {
            assert_eq!(Content::read(odd.as_bytes()).unwrap_err().kind(), ErrorKind::Unexpected, "{odd}");
        }
        let entry = Entry { key: b"y/k/g/n/lock".to_vec(), value: vec![], made: 1, changed: 1, lease: 0 };
        assert_eq!(Contender::read(&entry).unwrap_err().kind(), ErrorKind::Unexpected);
    }
}
