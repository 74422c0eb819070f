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

/// Returns the key of the hash that says in which version all is kept below the prefix: the key of no lock and of no job, which have a number in braces.
pub(crate) fn of_version(prefix: &str) -> String {
    format!("{prefix}:{{version}}")
}

/// Returns the pattern, in the language of Redis, of the keys of the hashes of all locks, or of those of a group. Other keys may fit too.
pub(crate) fn pattern(prefix: &str, group: Option<&str>) -> String {
    let prefix = escaped(prefix);
    match group {
        Some(group) => format!("{prefix}:{{*}}:{}:{}:*", group.len(), escaped(group)),
        None => format!("{prefix}:{{*}}:[0-9]*:*"),
    }
}

/// Returns the lock whose hash has this key; nothing if it is the key of something else.
pub(crate) fn read(prefix: &str, place: &str) -> Option<Key> {
    let rest = place.strip_prefix(prefix)?.strip_prefix(":{")?;
    let (_, rest) = rest.split_once("}:")?;
    let (length, rest) = rest.split_once(':')?;
    let (group, name) = rest.split_at_checked(length.parse().ok()?)?;
    let key = Key::new(group, name.strip_prefix(':')?).ok()?;
    // Also the part must be that of the lock, which is elsewhere otherwise.
    (of(prefix, &key) == place).then_some(key)
}

/// Returns a text as a part of a pattern that fits nothing else.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        if matches!(letter, '*' | '?' | '[' | ']' | '\\') {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
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

    #[test]
    fn the_key_of_a_hash_says_which_lock_it_is() {
        for (group, name) in [("users", "alice"), ("a:b", "c"), ("1:a", "b:c"), ("}:1:", "{x}:"), ("é", "\n")]
        {
            let key = Key::new(group, name).unwrap();
            assert_eq!(read("a:prefix", &of("a:prefix", &key)), Some(key));
        }
    }

    #[test]
    fn the_key_of_something_else_says_no_lock() {
        let key = Key::new("users", "alice").unwrap();
        assert_eq!(read("ylock", &of_run("ylock", &key)), None);
        assert_eq!(read("ylock", &of_version("ylock")), None);
        assert_eq!(read("ylock", &of("ylock:1", &key)), None);
        for place in [
            "",
            "ylock:{116}",
            "ylock:{117}:5:users:alice",
            "ylock:{116}:+5:users:alice",
            "ylock:{116}:5:users:",
        ] {
            assert_eq!(read("ylock", place), None, "{place}");
        }
    }

    #[test]
    fn a_pattern_takes_letters_with_a_meaning_as_they_are() {
        assert_eq!(pattern("ylock", None), "ylock:{*}:[0-9]*:*");
        assert_eq!(pattern("[y]", Some("a*b?\\")), "\\[y\\]:{*}:5:a\\*b\\?\\\\:*");
    }

    /// These must never change.
    #[test]
    fn a_place_is_for_ever() {
        let place = of("ylock", &Key::new("users", "alice").unwrap());
        assert_eq!((place.as_str(), part_of(&place)), ("ylock:{116}:5:users:alice", Some("116")));
        let of_run = of_run("ylock", &Key::new("users", "alice").unwrap());
        assert_eq!(of_run, "ylock:{116}:run:5:users:alice");
        assert_eq!(of_version("ylock"), "ylock:{version}");
    }
}
