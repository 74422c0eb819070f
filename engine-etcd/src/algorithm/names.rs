//! The keys in the store: `<prefix>/k/<group>/<name>/<mode>/<lease>-<slot>`, and those beside them.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use ylock_core::engine::AcquisitionId;
use ylock_core::url::percent_decoded;
use ylock_core::{Key, Mode};

/// What is written as it is, besides letters and digits. No slash: so no lock's prefix is the beginning of another's.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');

/// The keys below one prefix.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    prefix: String,
}

impl Names {
    pub(crate) fn below(prefix: &str) -> Self {
        Self { prefix: prefix.to_owned() }
    }

    /// Returns the key of the floor.
    pub(crate) fn floor(&self) -> Vec<u8> {
        format!("{}/floor", self.prefix).into_bytes()
    }

    /// Returns the prefix of the contenders of all locks, or of those of one group.
    pub(crate) fn locks(&self, group: Option<&str>) -> String {
        let group = group.map(|group| encode(group) + "/").unwrap_or_default();
        format!("{}/k/{group}", self.prefix)
    }

    /// Returns the prefix of the contenders of one lock.
    pub(crate) fn lock(&self, key: &Key) -> String {
        format!("{}/k/{}/{}/", self.prefix, encode(key.group()), encode(key.name()))
    }

    /// Returns the prefix of the contenders of one lock that conflict with one of this mode, or may.
    pub(crate) fn rivals(&self, key: &Key, mode: Mode) -> String {
        let lock = self.lock(key);
        if mode == Mode::Write { lock } else { lock + "w/" }
    }

    /// Returns the key of a contender that came in this mode: the same for one after the other of a client. The servers keep something of each key
    /// that there was until their history is compacted, and pass over it in every look at the lock.
    pub(crate) fn contender(&self, key: &Key, mode: Mode, lease: i64, slot: usize) -> Vec<u8> {
        let letter = if mode == Mode::Write { 'w' } else { 'r' };
        format!("{}{letter}/{lease:x}-{slot}", self.lock(key)).into_bytes()
    }

    /// Returns the key of the mark that says that this contender must not be made.
    pub(crate) fn mark(&self, id: AcquisitionId, number: u64) -> Vec<u8> {
        format!("{}/x/{:032x}-{number:x}", self.prefix, id.as_u128()).into_bytes()
    }

    /// Returns the key of the last run of a job.
    pub(crate) fn run(&self, key: &Key) -> Vec<u8> {
        format!("{}/j/{}/{}", self.prefix, encode(key.group()), encode(key.name())).into_bytes()
    }

    /// Reads the lock of a contender's key.
    pub(crate) fn read_lock(&self, key: &[u8]) -> Option<Key> {
        let text = std::str::from_utf8(key).ok()?.strip_prefix(&self.locks(None))?;
        let mut parts = text.split('/');
        let (group, name) = (parts.next()?, parts.next()?);
        Key::new(percent_decoded(group)?, percent_decoded(name)?).ok()
    }
}

/// Reads the mode in which a contender came from its key.
pub(crate) fn read_contender(key: &[u8]) -> Option<Mode> {
    let text = std::str::from_utf8(key).ok()?;
    let mut parts = text.rsplitn(3, '/');
    let (name, mode) = (parts.next()?, parts.next()?);
    let mode = match mode {
        "w" => Mode::Write,
        "r" => Mode::Read,
        _ => return None,
    };
    let (lease, slot) = name.split_once('-')?;
    let _: (u64, usize) = (u64::from_str_radix(lease, 16).ok()?, slot.parse().ok()?);
    Some(mode)
}

fn encode(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: Vec<u8>) -> String {
        String::from_utf8(bytes).unwrap()
    }

    /// These must never change.
    #[test]
    fn keys_are_for_ever() {
        let (names, key) = (Names::below("ylock"), Key::new("users", "al/ice é").unwrap());
        let id = AcquisitionId::from_u128(0xabc);
        assert_eq!(names.lock(&key), "ylock/k/users/al%2Fice%20%C3%A9/");
        assert_eq!(
            text(names.contender(&key, Mode::Write, 0xabc, 1)),
            "ylock/k/users/al%2Fice%20%C3%A9/w/abc-1"
        );
        assert_eq!(text(names.mark(id, 18)), "ylock/x/00000000000000000000000000000abc-12");
        assert_eq!(text(names.run(&key)), "ylock/j/users/al%2Fice%20%C3%A9");
        assert_eq!(text(names.floor()), "ylock/floor");
    }

    #[test]
    fn what_was_written_is_read_whatever_the_names_are() {
        let names = Names::below("apps/ylock");
        let odd = ["a", "a/b", "..", "%2F", "w", "r", "é", "\0", "a b"];
        for (group, name) in odd.iter().flat_map(|group| odd.iter().map(move |name| (group, name))) {
            let key = Key::new(*group, *name).unwrap();
            let written = names.contender(&key, Mode::Read, 7, 1);
            assert_eq!(names.read_lock(&written), Some(key));
            assert_eq!(read_contender(&written), Some(Mode::Read));
        }
    }

    #[test]
    fn the_rivals_of_a_reader_are_those_that_came_to_write() {
        let (names, key) = (Names::below("y"), Key::new("g", "n").unwrap());
        assert_eq!(names.rivals(&key, Mode::Write), "y/k/g/n/");
        assert_eq!(names.rivals(&key, Mode::Read), "y/k/g/n/w/");
    }
}
