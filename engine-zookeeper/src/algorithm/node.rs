//! A contender's node: its name, and what is in it.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ylock_core::engine::AcquisitionId;
use ylock_core::{ClientName, Error, ErrorKind, Mode, Owner, Result, StoreToken};

/// The greatest length of a name, with what goes with it.
pub(crate) const LONGEST_NAME: usize = 100;

/// The name of a contender's node, without its place: what can be known before the server has made the node, and by which it is
/// found again if the answer got lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tag {
    pub(crate) mode: Mode,
    pub(crate) id: AcquisitionId,
    /// The number of the session of its client that made the node. A node of an earlier session dies with that session, so it is never
    /// taken for one of this session.
    pub(crate) session: u64,
    /// With `strict`: when the contender came. Order only.
    pub(crate) ticket: Option<i64>,
}

impl Tag {
    /// Returns whether the same acquisition made both in the same session.
    pub(crate) fn is_of(&self, other: &Self) -> bool {
        (self.id, self.session) == (other.id, other.session)
    }

    /// Returns the name as it is given to the server, which appends the place.
    pub(crate) fn prefix(&self) -> String {
        let mode = if self.mode == Mode::Write { 'w' } else { 'r' };
        let ticket = self.ticket.map_or("x".to_owned(), |ticket| format!("{:x}", ticket as u64));
        format!("{mode}-{:032x}-{:x}-{ticket}-", self.id.as_u128(), self.session)
    }
}

/// The whole name. The place is what ZooKeeper calls the sequence: it grows from one child of a lock to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    pub(crate) tag: Tag,
    pub(crate) place: i32,
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:010}", self.tag.prefix(), self.place)
    }
}

impl Name {
    /// Reads the name of a contender's node.
    ///
    /// # Errors
    /// [`Unexpected`](ErrorKind::Unexpected) for a name that no version of this engine makes. Not to be passed over: it may stand for a
    /// holder.
    pub(crate) fn read(name: &str) -> Result<Self> {
        Self::parse(name).ok_or_else(|| odd(name))
    }

    fn parse(name: &str) -> Option<Self> {
        let [mode, id, session, ticket, place] = name.splitn(5, '-').collect::<Vec<_>>().try_into().ok()?;
        let mode = match mode {
            "w" => Mode::Write,
            "r" => Mode::Read,
            _ => return None,
        };
        let ticket = match ticket {
            "x" => None,
            ticket => Some(u64::from_str_radix(ticket, 16).ok()? as i64),
        };
        let id = AcquisitionId::from_u128(u128::from_str_radix(id, 16).ok()?);
        let tag = Tag { mode, id, session: u64::from_str_radix(session, 16).ok()?, ticket };
        let name_again = Self { tag, place: place.parse().ok()? };
        (name_again.to_string() == name).then_some(name_again)
    }
}

/// The content of a contender's node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) owner: Owner,
    pub(crate) client: ClientName,
    /// The time since when the acquisition contends, in microseconds of its client's wall clock.
    pub(crate) since: i64,
    /// The token, where it is not the number of the transaction that made the node: a writer became a reader.
    pub(crate) token: Option<StoreToken>,
    /// True if the lock was revoked, and its holder does not know it yet.
    pub(crate) revoked: bool,
}

impl Content {
    pub(crate) fn write(&self) -> Vec<u8> {
        let Self { owner, client, since, token, revoked } = self;
        let (token, revoked) = (token.map_or(0, StoreToken::get), u8::from(*revoked));
        format!("2 {owner} {since} {token} {revoked} {client}").into_bytes()
    }

    pub(crate) fn read(bytes: &[u8]) -> Result<Self> {
        Self::parse(bytes).ok_or_else(|| odd(&String::from_utf8_lossy(bytes)))
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        // The client's name is the rest: it may have blanks in it.
        let words: Vec<_> = std::str::from_utf8(bytes).ok()?.splitn(6, ' ').collect();
        let ["2", owner, since, token, revoked, client] = words[..] else { return None };
        let revoked = match revoked {
            "0" => false,
            "1" => true,
            _ => return None,
        };
        let token = StoreToken::new(token.parse().ok()?);
        let client = ClientName::stored(client);
        Some(Self { owner: owner.parse().ok()?, client, since: since.parse().ok()?, token, revoked })
    }

    pub(crate) fn since(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_micros(u64::try_from(self.since).unwrap_or_default())
    }
}

fn odd(what: &str) -> Error {
    let message = format!("{what:?} is stored for the lock, which is not what this version writes");
    Error::new(ErrorKind::Unexpected, message).with_engine(crate::NAME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_survives_being_written() {
        for (ticket, place) in
            [(None, 0), (Some(0), 7), (Some(1_700_000_000_000_000), i32::MAX), (Some(-1), 12)]
        {
            let tag = Tag { mode: Mode::Read, id: AcquisitionId::from_u128(77), session: 255, ticket };
            let name = Name { tag, place };
            assert_eq!(Name::read(&name.to_string()).unwrap(), name);
            assert!(name.to_string().starts_with(&tag.prefix()));
        }
    }

    #[test]
    fn what_nobody_writes_is_an_error_and_not_passed_over() {
        let zeros = "0".repeat(32);
        for odd in [
            "",
            "lock-0000000001",
            &format!("w-{zeros}-1-x-1"),
            &format!("w-{zeros}-1-x-+000000001"),
            &format!("q-{zeros}-1-x-0000000001"),
            &format!("w-{zeros}-1-0000000001"),
        ] {
            assert_eq!(Name::read(odd).unwrap_err().kind(), ErrorKind::Unexpected, "{odd}");
        }
        assert!(Name::read(&format!("w-{zeros}-1-x-0000000001")).is_ok());
        assert!(Content::read(b"1 x").is_err());
    }

    #[test]
    fn a_content_survives_being_written() {
        let client = ClientName::new("web 3").unwrap();
        let content =
            Content { owner: Owner::new(), client, since: 5, token: StoreToken::new(9), revoked: true };
        assert_eq!(Content::read(&content.write()).unwrap(), content);
        let content = Content { token: None, revoked: false, ..content };
        assert_eq!(Content::read(&content.write()).unwrap(), content);
    }
}
