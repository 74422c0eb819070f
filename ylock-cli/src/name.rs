//! The name of a lock, as it is typed: `group/name`.

use std::str::FromStr;

use ylock::Key;

/// A lock that was named. The first slash ends the group; the name may have more of them.
#[derive(Clone, Debug)]
pub(crate) struct LockName(pub(crate) Key);

impl FromStr for LockName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/');
        let (group, name) = parts.ok_or("a lock has a group and a name, as in users/alice")?;
        Key::new(group, name).map(Self).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_slash_ends_the_group() {
        let LockName(key) = "files/etc/motd".parse().unwrap();
        assert_eq!((key.group(), key.name()), ("files", "etc/motd"));
        for wrong in ["alice", "/alice", "users/", ""] {
            assert!(wrong.parse::<LockName>().is_err(), "{wrong}");
        }
    }
}
