//! The key of a lock: the pair of its group and its name.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher};
use std::sync::{Arc, OnceLock};

use foldhash::fast::RandomState;

use crate::error::{Error, ErrorKind, Result};
use crate::name::Name;

/// The most bytes of UTF-8 that a group may have.
pub const MAX_GROUP_BYTES: usize = 256;
/// The most bytes of UTF-8 that a name may have.
pub const MAX_NAME_BYTES: usize = 1024;

/// One lock: a name within a group.
///
/// Both are stored exactly as given, whatever characters they contain, and are never joined to one text:
/// `("a:b", "c")` and `("a", "b:c")` are two locks.
#[derive(Clone)]
pub struct Key(Arc<Inner>);

/// One allocation for all clones: a lock that is held has its key in half a dozen places.
struct Inner {
    /// That of both texts, by a seed of this process: every call looks the key up several times.
    hash: u64,
    group: Arc<str>,
    name: Arc<str>,
}

impl Key {
    /// Creates a key from a group and a name.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] if one of them is empty or longer than [`MAX_GROUP_BYTES`] or [`MAX_NAME_BYTES`].
    pub fn new(group: impl Name, name: impl Name) -> Result<Self> {
        let group = group.into_name();
        check_group(&group)?;
        let name = name.into_name();
        check("name", &name, MAX_NAME_BYTES)?;
        Ok(Self(Arc::new(Inner { hash: hash(&group, &name), group, name })))
    }

    /// Returns the group: what the lock is for.
    pub fn group(&self) -> &str {
        &self.0.group
    }

    /// Returns the name: which lock of the group.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns the key as one text, for engines: the length of the group in bytes, and both parts. No two keys have the same.
    pub fn to_text(&self) -> String {
        format!("{}:{}{}", self.group().len(), self.group(), self.name())
    }

    /// Reads what [`to_text`](Self::to_text) has written. `None` if this is not such a text.
    pub fn read(text: &str) -> Option<Self> {
        let (length, parts) = text.split_once(':')?;
        let (group, name) = parts.split_at_checked(length.parse().ok()?)?;
        Self::new(group, name).ok().filter(|key| key.to_text() == text)
    }

    fn texts(&self) -> (&str, &str) {
        (self.group(), self.name())
    }
}

/// Checks a group that is named without a name.
pub(crate) fn check_group(group: &str) -> Result<()> {
    check("group", group, MAX_GROUP_BYTES)
}

fn hash(group: &str, name: &str) -> u64 {
    static SEED: OnceLock<RandomState> = OnceLock::new();
    SEED.get_or_init(RandomState::default).hash_one((group, name))
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        let (own, others) = (&*self.0, &*other.0);
        Arc::ptr_eq(&self.0, &other.0) || own.hash == others.hash && self.texts() == other.texts()
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0.hash);
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        self.texts().cmp(&other.texts())
    }
}

/// Builds the hashers of maps whose keys are [`Key`]s: they take the hash that a key has.
pub(crate) type BuildKeyHasher = BuildHasherDefault<KeyHasher>;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn write(&mut self, bytes: &[u8]) {
        // No key writes bytes. Whatever else is hashed is hashed badly, but by all of it.
        self.0 = bytes.iter().fold(self.0, |hash, byte| hash.rotate_left(8) ^ u64::from(*byte));
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Writes `group/name`, for people to read: two keys may look the same.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.group(), self.name())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}/{:?}", self.group(), self.name())
    }
}

fn check(what: &str, text: &str, limit: usize) -> Result<()> {
    if text.is_empty() {
        return Err(Error::new(ErrorKind::Invalid, format!("the {what} of a lock must not be empty")));
    }
    if text.len() > limit {
        let message = format!("the {what} of a lock has {} bytes; the limit is {limit}", text.len());
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_do_not_collide() {
        assert_ne!(Key::new("a:b", "c").unwrap(), Key::new("a", "b:c").unwrap());
        assert_ne!(Key::new("a\"/\"b", "c").unwrap(), Key::new("a", "b\"/\"c").unwrap());
    }

    #[test]
    fn equal_texts_are_one_key_however_they_came() {
        let (one, other) = (Key::new("g", "x").unwrap(), Key::new(String::from("g"), "x").unwrap());
        assert_eq!(one, other);
        let state = BuildKeyHasher::default();
        assert_eq!(state.hash_one(&one), state.hash_one(&other));
        assert_ne!(state.hash_one(&one), state.hash_one(Key::new("gx", "x").unwrap()));
    }

    #[test]
    fn keys_with_one_hash_are_two_locks() {
        let key = |name: &str| Key(Arc::new(Inner { hash: 7, group: "g".into(), name: name.into() }));
        assert_eq!(key("x"), key("x"));
        assert_ne!(key("x"), key("y"));
    }

    #[test]
    fn keys_are_ordered_by_group_and_then_by_name() {
        let key = |group: &str, name: &str| Key::new(group, name).unwrap();
        let mut keys = [key("b", "a"), key("a", "c"), key("a", "b"), key("ab", "a")];
        keys.sort();
        assert_eq!(keys.map(|key| key.to_string()), ["a/b", "a/c", "ab/a", "b/a"]);
    }

    #[test]
    fn a_number_is_the_name_that_its_digits_are() {
        let text = String::from("7");
        for key in
            [Key::new("g", 7_u64), Key::new("g", 7_i32), Key::new("g", &text), Key::new("g", text.clone())]
        {
            assert_eq!(key.unwrap(), Key::new("g", "7").unwrap());
        }
        assert_eq!(Key::new("users", -1).unwrap().to_string(), "users/-1");
    }

    #[test]
    fn limits_are_named() {
        let error = Key::new("g", "x".repeat(MAX_NAME_BYTES + 1)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains("1024"), "{error}");
        assert!(Key::new("g", "x".repeat(MAX_NAME_BYTES)).is_ok());
        assert!(Key::new("", "x").unwrap_err().to_string().contains("group"));
    }
}
