//! The locks that a semaphore is made of.

use crate::error::{Error, ErrorKind, Result};
use crate::key::Key;
use crate::owner::Owner;
use crate::purpose::{CLIENTS, MAX_PERMITS, PERMIT, TURNSTILE, beside};

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::purpose::{Purpose, named};

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
                assert_eq!(Purpose::of(&part), Purpose::Part(key(name)));
                assert_eq!(named("group", part.name()).unwrap_err().kind(), ErrorKind::Invalid);
            }
        }
    }

    #[test]
    fn a_name_is_too_long_where_that_of_its_last_permit_is() {
        let long = "x".repeat(crate::key::MAX_NAME_BYTES - " \u{203a} semaphore".len());
        assert!(Keys::of(key(&long), 9).is_ok());
        assert!(Keys::of(key(&format!("{long}x")), 9).is_err());
    }
}
