//! The paths of a lock's nodes: `<base>/<bucket>/<lock>/<contender>`.

use ylock_core::Key;

/// The number of parents that the locks are divided among, so that none has millions of children. They are made when they are first
/// needed and stay: so few nodes cost nothing. Fixed: clients with another number would not exclude each other.
const BUCKETS: u128 = 256;
/// The longest name of a lock's node that is written out.
const LONGEST_PLAIN: usize = 40;

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

    /// Returns the path of a contender's node.
    pub(crate) fn child(&self, name: &str) -> String {
        format!("{}/{name}", self.lock)
    }
}

/// Returns the name of a lock's node: group and name where they are short, otherwise their hash. [`exact`] is stored in the node.
pub(crate) fn name(key: &Key) -> String {
    let plain = format!("{}:{}", encode(key.group()), encode(key.name()));
    // No plain name begins so: the letter is always encoded.
    if plain.len() <= LONGEST_PLAIN { plain } else { format!("#{:032x}", hash(key)) }
}

/// Returns the key as the lock's node stores it, for operators who look at the servers: the length of the group keeps any two keys apart.
pub(crate) fn exact(key: &Key) -> Vec<u8> {
    format!("{}:{}{}", key.group().len(), key.group(), key.name()).into_bytes()
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
                assert!(places.insert(place), "{group:?} {name:?}");
            }
        }
    }

    #[test]
    fn no_name_makes_a_path_long() {
        let key = Key::new("g".repeat(256), "é".repeat(512)).unwrap();
        assert!(Place::of("/ylock", &key).lock.len() <= "/ylock/00/".len() + LONGEST_PLAIN);
        assert_eq!(exact(&key).len(), "256:".len() + 256 + 1024);
    }
}
