//! The version of what is stored: how a client says that it found another one than its own.
//!
//! Clients that write in another way than this one would not see each other's holders. So each store says which version it is kept in, and a client
//! that finds another one is refused.
//!
//! For engines. Not covered by semver.

use std::fmt;

use crate::error::{Error, ErrorKind};

/// The word before the version, in the text of a store whose first version was written without it.
const WORD: &str = "version=";
/// The version of a text without the word.
const FIRST: &str = "1";

/// A store that is kept in another version than this client works with.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::exhaustive_structs, reason = "not covered by semver")]
pub struct OtherVersion<'a> {
    /// What is kept in it, as the operator knows it: a prefix, a schema, a table, a folder.
    pub of: &'a str,
    /// What the clients of this version may name instead, to have a place of their own.
    pub place: &'a str,
    /// The version that was found.
    pub found: &'a str,
    /// The version of this client.
    pub own: &'a str,
    /// What is to be done after all clients of the other version have ended.
    pub remedy: &'a str,
}

impl OtherVersion<'_> {
    /// Returns the error that refuses this client, of the kind [`Config`](ErrorKind::Config).
    pub fn refused(self, engine: &'static str) -> Error {
        Error::new(ErrorKind::Config, self.to_string()).with_engine(engine)
    }
}

impl fmt::Display for OtherVersion<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { of, place, found, own, remedy } = self;
        write!(
            f,
            "{of} is kept in version {found} by clients of another ylock, and this client works with version {own}. Clients of these two versions \
             cannot work side by side: use a ylock that works with version {found}, or name another {place}; or end all clients of version {found}, and then {remedy}"
        )
    }
}

/// Returns the version that a text names among other words, as `version=2`. Without that word it is the first one, which was written without it.
pub fn named_in(text: &str) -> &str {
    let named = text.split([' ', ';', ',']).find_map(|word| word.strip_prefix(WORD));
    named.unwrap_or(FIRST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_names_what_it_is_about_both_versions_and_the_remedy() {
        let other = OtherVersion {
            of: "prefix ylock",
            place: "prefix",
            found: "7",
            own: "3",
            remedy: "delete the key",
        };
        let error = other.refused("redis");
        assert_eq!(error.kind(), ErrorKind::Config);
        for part in [
            "prefix ylock",
            "version 7",
            "version 3",
            "side by side",
            "another prefix",
            "end all clients",
            "delete the key",
        ] {
            assert!(error.to_string().contains(part), "{part}: {error}");
        }
    }

    #[test]
    fn a_text_without_the_word_is_of_the_first_version() {
        for (text, version) in [
            ("", "1"),
            ("ff 77", "1"),
            ("ff 77 version=2", "2"),
            ("locks; expiry=ttl; version=1, says the operator", "1"),
            ("subversion=9", "1"),
            ("version=", ""),
            ("version=later", "later"),
        ] {
            assert_eq!(named_in(text), version, "{text:?}");
        }
    }
}
