//! The locks that a semaphore is made of.

use crate::engine::Inspection;
use crate::error::{Error, ErrorKind, Result};
use crate::key::Key;
use crate::owner::Owner;
use crate::permits::{self, permits_of};

/// The most permits that a semaphore may have.
pub const MAX_PERMITS: u32 = 1000;

/// The keys of one semaphore.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    /// The name itself. Each client that has a permit, or waits for one, holds it as a reader, so it excludes writers of the lock of that name;
    /// and its owner says how many permits there are, so that a client which says another number notices.
    pub(super) name: Key,
    /// The turnstile: its holder is the first that waits for a permit. Its queue is that of the semaphore.
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
        let keys = Self { turnstile: beside(&name, "turnstile")?, name, count };
        // The longest key: either all can be made, or the name is too long.
        keys.permit(keys.permits() - 1)?;
        Ok(keys)
    }

    /// Returns the key of the lock of one permit, counted from zero. Its holder has the permit. Made when it is needed: most calls need one of many.
    pub(super) fn permit(&self, place: usize) -> Result<Key> {
        beside(&self.name, &format!("permit {}", place + 1))
    }

    /// Returns how many permits there are, as a number of places.
    pub(super) fn permits(&self) -> usize {
        self.count as usize
    }

    /// Returns the owner by which readers of the name are known.
    pub(super) fn owner(&self) -> Owner {
        permits::owner_of(self.count())
    }

    /// Returns how many permits there are.
    pub(super) fn count(&self) -> u32 {
        self.count
    }
}

fn beside(name: &Key, what: &str) -> Result<Key> {
    Key::new(name.group(), format!("{} \u{203a} {what}", name.name()))
}

/// Returns the keys of the permits of the semaphore of this name that these holders of the name have, or wait for; none if it is used as a lock.
pub(super) fn of_holders(name: &Key, seen: &Inspection) -> Vec<Key> {
    let counts = seen.holders.iter().filter_map(|holder| permits_of(holder.owner));
    let Some(Ok(keys)) = counts.max().map(|count| Keys::of(name.clone(), count)) else { return Vec::new() };
    (0..keys.permits()).filter_map(|place| keys.permit(place).ok()).collect()
}
