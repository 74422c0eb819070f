//! The paths of a lock's nodes: `<base>/<bucket>/<lock>/<contender>`.

use ylock_core::Key;
use ylock_core::url::percent_decoded;

/// The number of parents that the locks are divided among, so that none has millions of children. They are made when they are first
/// needed and stay: so few nodes cost nothing. Fixed: clients with another number would not exclude each other.
const BUCKETS: u128 = 256;
/// The longest name of a lock's node that is written out.
const LONGEST_PLAIN: usize = 40;
/// How the name of a lock's node begins that is a hash. No plain name begins so: the letter is always encoded.
const HASH: char = '#';

/// The nodes of one lock. All paths are short, whatever its names are: the server ends a session by one record with all its paths,
/// and cannot start again if that record is too long.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// The bucket.
    pub(crate) bucket: String,
    /// The lock, whose children are its contenders.
    pub(crate) lock: String,
}

impl Place {
    pub(crate) fn of(base: &str, key: &Key) -> Self {
        let bucket = format!("{base}/{:02x}", hash(key) % BUCKETS);
        let lock = format!("{bucket}/{}", name(key));
        Self { bucket, lock }
    }

    /// Returns where the last run of a job is. No bucket of locks has the name of the node above.
    pub(crate) fn of_run(base: &str, key: &Key) -> Self {
        Self::of(&format!("{base}/runs"), key)
    }

    /// Returns the place whose children are the locks of a bucket.
    pub(crate) fn of_bucket(base: &str, bucket: u8) -> Self {
        let bucket = format!("{base}/{bucket:02x}");
        Self { lock: bucket.clone(), bucket }
    }

    /// Returns the path of a contender's node.
    pub(crate) fn child(&self, name: &str) -> String {
        format!("{}/{name}", self.lock)
    }
}

/// Returns the name of a lock's node: group and name where they are short, otherwise their hash. [`exact`] is stored in the node.
pub(crate) fn name(key: &Key) -> String {
    let plain = format!("{}:{}", encode(key.group()), encode(key.name()));
    if plain.len() <= LONGEST_PLAIN { plain } else { format!("{HASH}{:032x}", hash(key)) }
}

/// Returns the key as the lock's node stores it, for operators who look at the servers: the length of the group keeps any two keys apart.
pub(crate) fn exact(key: &Key) -> Vec<u8> {
    key.to_text().into_bytes()
}

/// Returns whether the name of a lock's node does not tell the key, so that it must be read.
pub(crate) fn is_hash(name: &str) -> bool {
    name.starts_with(HASH)
}

/// Returns whether a node of this name may be that of a lock of the group.
pub(crate) fn may_be_of(name: &str, group: Option<&str>) -> bool {
    let is_of = |group| name.split_once(':').is_some_and(|(begin, _)| begin == encode(group));
    is_hash(name) || group.is_none_or(is_of)
}

/// Reads the key in the name of a lock's node. What is no such name may be read too, as a key whose node has another name.
pub(crate) fn read_name(name: &str) -> Option<Key> {
    let (group, name) = name.split_once(':')?;
    Key::new(percent_decoded(group)?, percent_decoded(name)?).ok()
}

/// Reads a key as [`exact`] writes it.
pub(crate) fn read_exact(content: &[u8]) -> Option<Key> {
    Key::read(std::str::from_utf8(content).ok()?)
}

/// Encodes every character but those that have a special meaning nowhere. ZooKeeper refuses some, such as NUL, and reserves `.` and `..`.
fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => encoded.push(char::from(byte)),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

/// Returns FNV-1a of 128 bits over group and name, kept apart by a byte that is in no UTF-8. Two locks with one hash would exclude each
/// other, which is a pity and not a danger.
fn hash(key: &Key) -> u128 {
    let bytes = key.group().bytes().chain([0xff]).chain(key.name().bytes());
    bytes.fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, |hash: u128, byte| {
        (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock(group: &str, name: &str) -> String {
        Place::of("/ylock", &Key::new(group, name).unwrap()).lock
    }

    /// These must never change.
    #[test]
    fn a_place_is_for_ever() {
        assert_eq!(lock("users", "alice"), "/ylock/24/users:alice");
        let run = Place::of_run("/ylock", &Key::new("users", "alice").unwrap());
        assert_eq!(
            (run.bucket.as_str(), run.lock.as_str()),
            ("/ylock/runs/24", "/ylock/runs/24/users:alice")
        );
        assert_eq!(lock("users", &"x".repeat(100)), "/ylock/5c/#ad9eee201b14e046883a93329163035c");
    }

    #[test]
    fn odd_names_stay_apart_and_are_allowed() {
        let odd = [
            "a:b",
            "a%3Ab",
            "a",
            ":b",
            ".",
            "..",
            "/",
            "a/b",
            "\0",
            "%00",
            "zookeeper",
            "é",
            "e\u{301}",
            "#1",
            "\u{f8ff}",
        ];
        let mut places = std::collections::HashSet::new();
        for group in odd {
            for name in odd {
                let place = lock(group, name);
                let last = place.rsplit('/').next().unwrap();
                assert!(last.bytes().all(|byte| byte.is_ascii_graphic()), "{place}");
                assert_eq!(place.matches('/').count(), 3, "{place}");
                let key = Key::new(group, name).unwrap();
                let read = if is_hash(last) { read_exact(&exact(&key)) } else { read_name(last) };
                assert_eq!(read, Some(key), "{place}");
                assert!(places.insert(place), "{group:?} {name:?}");
            }
        }
    }

    #[test]
    fn what_is_no_name_of_a_lock_is_read_as_another_one_or_not_at_all() {
        for odd in ["", "users", "users:", ":alice", "users:%", "users:%4", "users:%zz", "users:%ff", "%é:a"]
        {
            assert_eq!(read_name(odd), None, "{odd}");
        }
        assert_eq!(name(&read_name("users:%61lice").unwrap()), "users:alice");
        for odd in [&b""[..], b"5", b"5:users", b"9:users", b"x:users", b"\xff:a"] {
            assert_eq!(read_exact(odd), None, "{odd:?}");
        }
    }

    #[test]
    fn no_name_makes_a_path_long() {
        let key = Key::new("g".repeat(256), "é".repeat(512)).unwrap();
        assert!(Place::of("/ylock", &key).lock.len() <= "/ylock/00/".len() + LONGEST_PLAIN);
        assert_eq!(exact(&key).len(), "256:".len() + 256 + 1024);
    }
}
