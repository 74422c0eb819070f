//! What the lock of a key is for: the names of the locks that a semaphore is made of are no names for other locks.

use crate::error::{Error, ErrorKind, Result};
use crate::key::Key;
use crate::name::Name;

/// The most permits that a semaphore may have.
pub const MAX_PERMITS: u32 = 1000;

/// What stands between the name of a semaphore and the word for one of its locks.
const MARK: &str = " \u{203a} ";
/// The words for these locks; the number of a permit follows.
pub(crate) const CLIENTS: &str = "semaphore";
pub(crate) const TURNSTILE: &str = "turnstile";
pub(crate) const PERMIT: &str = "permit ";

/// Returns the key of one of the locks of the semaphore with this name.
pub(crate) fn beside(name: &Key, what: &str) -> Result<Key> {
    Key::new(name.group(), format!("{}{MARK}{what}", name.name()))
}

/// What the lock of a key is for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A program locks it.
    Lock,
    /// The clients of this semaphore read it.
    Clients(Key),
    /// It is the turnstile of this semaphore, or one of its permits.
    Part(Key),
}

impl Purpose {
    pub(crate) fn of(key: &Key) -> Self {
        match key.name().rsplit_once(MARK) {
            Some((name, CLIENTS)) => Key::new(key.group(), name).map_or(Self::Lock, Self::Clients),
            Some((name, word)) if is_part(word) => Key::new(key.group(), name).map_or(Self::Lock, Self::Part),
            _ => Self::Lock,
        }
    }
}

fn is_part(word: &str) -> bool {
    let number = word.strip_prefix(PERMIT).and_then(|number| number.parse::<u32>().ok());
    // As it is written: not `+5`, and not `05`.
    let is_number = |number: u32| (1..=MAX_PERMITS).contains(&number) && word == format!("{PERMIT}{number}");
    word == TURNSTILE || number.is_some_and(is_number)
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

    #[test]
    fn a_name_that_is_only_like_that_of_a_part_is_one_for_a_lock() {
        for name in [
            "turnstile",
            " \u{203a} turnstile",
            "a > turnstile",
            "a \u{203a} permit",
            "a \u{203a} permit 0",
            "a \u{203a} permit 1001",
            "a \u{203a} permit 05",
        ] {
            let key = Key::new("group", name).unwrap();
            assert_eq!(Purpose::of(&key), Purpose::Lock, "{name}");
            assert_eq!(named("group", name).unwrap(), key);
        }
    }
}
