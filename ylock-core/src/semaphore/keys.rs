//! The locks that a semaphore is made of, and their names.

use crate::error::{Error, ErrorKind, Result};
use crate::key::Key;
use crate::name::Name;
use crate::owner::Owner;

/// The most permits that a semaphore may have.
pub const MAX_PERMITS: u32 = 1000;

/// What stands between the name of a semaphore and the word for one of its locks.
const MARK: &str = " \u{203a} ";
const CLIENTS: &str = "semaphore";
const TURNSTILE: &str = "turnstile";
const PERMIT: &str = "permit ";

/// How the owner begins by which a client reads the lock of the clients; the number of permits follows.
const OWNER: [u8; 12] = *b"ylock permit";

/// The keys of one semaphore.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    /// The group and the name that the program gave.
    pub(super) name: Key,
    /// Read by each client that has a permit or waits for one. Its owner says how many permits there are, so that a client which says another number
    /// notices.
    pub(super) clients: Key,
    /// Its holder is the first that waits for a permit. Its queue is that of the semaphore.
    pub(super) turnstile: Key,
    count: u32,
}

impl Keys {
    /// # Errors
    /// [`ErrorKind::Invalid`] if there are no permits, or too many, or the name is too long for that of a permit.
    pub(super) fn of(name: Key, count: u32) -> Result<Self> {
        if !(1..=MAX_PERMITS).contains(&count) {
            let message = format!("a semaphore has 1 to {MAX_PERMITS} permits, not {count}");
            return Err(Error::new(ErrorKind::Invalid, message).with_key(&name));
        }
        let keys = Self { turnstile: beside(&name, TURNSTILE)?, clients: clients(&name)?, name, count };
        // The longest key: either all can be made, or the name is too long.
        keys.permit(keys.permits() - 1)?;
        Ok(keys)
    }

    /// Returns the key of the lock of one permit, counted from zero. Its holder has the permit. Made when it is needed: most calls need one of many.
    pub(super) fn permit(&self, place: usize) -> Result<Key> {
        beside(&self.name, &format!("{PERMIT}{}", place + 1))
    }

    /// Returns how many permits there are, as a number of places.
    pub(super) fn permits(&self) -> usize {
        self.count as usize
    }

    /// Returns the owner by which clients that count on this number of permits are known.
    pub(super) fn owner(&self) -> Owner {
        let mut bytes = [0; 16];
        bytes[..12].copy_from_slice(&OWNER);
        bytes[12..].copy_from_slice(&self.count.to_be_bytes());
        Owner::from_bytes(bytes)
    }

    /// Returns how many permits there are.
    pub(super) fn count(&self) -> u32 {
        self.count
    }
}

/// Returns the key of the lock that the clients of a semaphore read.
pub(super) fn clients(name: &Key) -> Result<Key> {
    beside(name, CLIENTS)
}

/// Returns on how many permits a client counts, by the owner that reads the lock of the clients.
pub(super) fn permits_of(owner: Owner) -> Option<u32> {
    let bytes = owner.to_bytes();
    let number = bytes.strip_prefix(&OWNER)?;
    Some(u32::from_be_bytes(number.try_into().ok()?))
}

fn beside(name: &Key, what: &str) -> Result<Key> {
    Key::new(name.group(), format!("{}{MARK}{what}", name.name()))
}

/// What the lock of a key is for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A program locks it.
    Lock,
    /// The clients of this semaphore read it.
    Clients(Key),
    /// The turnstile of a semaphore, or one of its permits.
    Part,
}

impl Purpose {
    pub(crate) fn of(key: &Key) -> Self {
        match key.name().rsplit_once(MARK) {
            Some((name, CLIENTS)) => Key::new(key.group(), name).map_or(Self::Lock, Self::Clients),
            Some((name, word)) if !name.is_empty() && is_part(word) => Self::Part,
            _ => Self::Lock,
        }
    }
}

fn is_part(word: &str) -> bool {
    let number = word.strip_prefix(PERMIT).and_then(|number| number.parse().ok());
    word == TURNSTILE || number.is_some_and(|number: u32| (1..=MAX_PERMITS).contains(&number))
}

/// Returns the key of a lock, or of a semaphore, that a program names.
///
/// # Errors
/// Those of [`Key::new`]; and [`ErrorKind::Invalid`] if a semaphore has a lock of this name: the two would keep each other out.
pub(crate) fn named(group: impl Name, name: impl Name) -> Result<Key> {
    let key = Key::new(group, name)?;
    if Purpose::of(&key) == Purpose::Lock {
        return Ok(key);
    }
    let message = format!(
        "names that end in {CLIENTS:?}, {TURNSTILE:?} or \"{PERMIT}N\" after {MARK:?} are those of the locks that a semaphore is made of: choose another name"
    );
    Err(Error::new(ErrorKind::Invalid, message).with_key(&key))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        Key::new("group", name).unwrap()
    }

    /// Clients of other versions look for them: these must never change.
    #[test]
    fn names_are_for_ever() {
        let keys = Keys::of(key("render"), 2).unwrap();
        assert_eq!(keys.clients, key("render \u{203a} semaphore"));
        assert_eq!(keys.turnstile, key("render \u{203a} turnstile"));
        assert_eq!(keys.permit(1).unwrap(), key("render \u{203a} permit 2"));
        assert_eq!(keys.owner().to_bytes(), *b"ylock permit\0\0\0\x02");
        assert_eq!(permits_of(keys.owner()), Some(2));
    }

    #[test]
    fn each_lock_of_a_semaphore_is_known_as_one() {
        for name in ["render", "a \u{203a} b", " \u{203a} ", "render \u{203a} semaphore"] {
            let keys = Keys::of(key(name), MAX_PERMITS).unwrap();
            assert_eq!(Purpose::of(&keys.clients), Purpose::Clients(key(name)));
            for part in [keys.turnstile.clone(), keys.permit(0).unwrap(), keys.permit(999).unwrap()] {
                assert_eq!(Purpose::of(&part), Purpose::Part);
                assert_eq!(named("group", part.name()).unwrap_err().kind(), ErrorKind::Invalid);
            }
        }
        for name in [
            "turnstile",
            "a > turnstile",
            "a \u{203a} permit",
            "a \u{203a} permit 0",
            "a \u{203a} permit 1001",
        ] {
            assert_eq!(Purpose::of(&key(name)), Purpose::Lock, "{name}");
            assert_eq!(named("group", name).unwrap(), key(name));
        }
    }

    #[test]
    fn a_name_is_too_long_where_that_of_its_last_permit_is() {
        let long = "x".repeat(crate::key::MAX_NAME_BYTES - " \u{203a} semaphore".len());
        assert!(Keys::of(key(&long), 9).is_ok());
        assert!(Keys::of(key(&format!("{long}x")), 9).is_err());
    }
}
