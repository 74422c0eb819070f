//! The keys of locks, as the server has them.

use ylock_core::Key;

/// Between group and name: in no UTF-8.
const BETWEEN: u8 = 0xff;

/// Returns the key of a lock's row.
pub(crate) fn of(key: &Key) -> Vec<u8> {
    let (group, name) = (key.group().as_bytes(), key.name().as_bytes());
    let mut place = Vec::with_capacity(group.len() + name.len() + 1);
    place.extend_from_slice(group);
    place.push(BETWEEN);
    place.extend_from_slice(name);
    place
}

/// Returns the lock whose row has this key; nothing if it is the key of something else.
pub(crate) fn read(place: &[u8]) -> Option<Key> {
    let (group, name) = place.split_at(place.iter().position(|byte| *byte == BETWEEN)?);
    Key::new(std::str::from_utf8(group).ok()?, std::str::from_utf8(&name[1..]).ok()?).ok()
}

/// Returns the first key that a lock of a group can have, and the first after all of them.
pub(crate) fn bounds(group: &str) -> (Vec<u8>, Vec<u8>) {
    let first = [group.as_bytes(), &[BETWEEN]].concat();
    let behind = [&first[..], &[BETWEEN]].concat();
    (first, behind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_a_row_says_which_lock_it_is() {
        for (group, name) in [("users", "alice"), ("a", "b:c"), ("a:b", "c"), ("é", "\n"), ("\0", "\0")] {
            let key = Key::new(group, name).unwrap();
            assert_eq!(read(&of(&key)), Some(key));
        }
        for wrong in [&b"users"[..], b"\xffx", b"x\xff", b"x\xff\xff"] {
            assert_eq!(read(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn the_locks_of_a_group_are_between_its_bounds_and_those_of_others_are_not() {
        let (first, behind) = bounds("users");
        let is_in = |group: &str, name: &str| {
            let place = of(&Key::new(group, name).unwrap());
            first < place && place < behind
        };
        assert!(is_in("users", "\0") && is_in("users", "\u{10ffff}"));
        assert!(!is_in("user", "s") && !is_in("users2", "a") && !is_in("userr", "\u{10ffff}"));
    }

    /// This must never change.
    #[test]
    fn a_place_is_for_ever() {
        assert_eq!(of(&Key::new("users", "alice").unwrap()), b"users\xffalice");
    }
}
