//! What a lock is called on the server.

use ylock_core::Key;

/// How many parts the locks are divided into. Fixed: clients that divide otherwise would not exclude each other.
const PARTS: u32 = 256;

/// The key of a lock's hash. The lengths keep any two locks apart, whatever letters their names have; the part in braces decides
/// where in a cluster it is. There are none in a prefix.
pub(crate) fn of(prefix: &str, key: &Key) -> String {
    let (group, name) = (key.group(), key.name());
    format!("{prefix}:{{{}}}:{}:{group}:{name}", part(key), group.len())
}

/// The part that the key of a hash says.
pub(crate) fn part_of(place: &str) -> Option<&str> {
    let (_, rest) = place.split_once('{')?;
    Some(rest.split_once('}')?.0)
}

/// FNV-1a over group and name, kept apart by a byte that is in no UTF-8.
fn part(key: &Key) -> u32 {
    let bytes = key.group().bytes().chain([0xff]).chain(key.name().bytes());
    let hash = bytes.fold(0x811c_9dc5u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    hash % PARTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_do_not_make_two_locks_one() {
        let place = |group: &str, name: &str| of("ylock", &Key::new(group, name).unwrap());
        assert_ne!(place("a:b", "c"), place("a", "b:c"));
        assert_ne!(place("1:a", "b"), place("1", "a:b"));
        assert_ne!(place("a", "}b"), place("a}", "b"));
    }

    /// These must never change.
    #[test]
    fn a_place_is_for_ever() {
        let place = of("ylock", &Key::new("users", "alice").unwrap());
        assert_eq!((place.as_str(), part_of(&place)), ("ylock:{116}:5:users:alice", Some("116")));
    }
}
