//! The key of a lock: the pair of its group and its name.

use std::fmt;
use std::sync::Arc;

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
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
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
        check("group", &group, MAX_GROUP_BYTES)?;
        let name = name.into_name();
        check("name", &name, MAX_NAME_BYTES)?;
        Ok(Self { group, name })
    }

    /// Returns the group: what the lock is for.
    pub fn group(&self) -> &str {
        &self.group
    }

    /// Returns the name: which lock of the group.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Writes `group/name`, for people to read: two keys may look the same.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.group, self.name)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}/{:?}", self.group, self.name)
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
