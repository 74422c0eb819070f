//! The names of locks on the server.

use std::fmt::Write;

use ylock_core::Key;

/// The number of parts that the locks are divided into. Fixed: clients with another number of parts would not exclude each other.
const PARTS: u32 = 256;

/// Returns the key of a lock's hash. The length of the group keeps any two locks apart, whatever letters their names have; the part in
/// braces decides where in a cluster the lock is. A prefix has no braces.
pub(crate) fn of(prefix: &str, key: &Key) -> String {
    let (group, name) = (key.group(), key.name());
    // Room for all of it, so that memory is allocated once.
    let mut place = String::with_capacity(prefix.len() + group.len() + name.len() + 16);
    write!(place, "{prefix}:{{{}}}:{}:{group}:{name}", part(key), group.len())
        .expect("a string takes everything");
    place
}

/// Returns the key of the hash of the last run of a job: in the part of the lock of that name, and the key of no lock, because a lock has the length
/// of its group in this place.
pub(crate) fn of_run(prefix: &str, key: &Key) -> String {
    format!("{prefix}:{{{}}}:run:{}:{}:{}", part(key), key.group().len(), key.group(), key.name())
}

/// Returns the part that the key of a hash names.
pub(crate) fn part_of(place: &str) -> Option<&str> {
    let (_, rest) = place.split_once('{')?;
    Some(rest.split_once('}')?.0)
}

/// Returns the part of a lock, by FNV-1a over group and name, which are kept apart by a byte that is in no UTF-8.
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
        let of_run = of_run("ylock", &Key::new("users", "alice").unwrap());
        assert_eq!(of_run, "ylock:{116}:run:5:users:alice");
    }
}
