//! The locks that are wanted together.

use crate::error::{Error, ErrorKind, Result};
use crate::key::Key;
use crate::mode::Mode;

/// The most locks that a set may have.
pub const MAX_MEMBERS: usize = 1024;

/// One lock of a set.
#[derive(Clone, Debug)]
pub struct Member {
    pub(super) key: Key,
    pub(super) mode: Mode,
}

/// The locks that are wanted together, as they were named.
#[derive(Clone, Debug, Default)]
pub(super) struct Wanted {
    members: Vec<Member>,
    /// The first bad name. It is reported by the first acquisition.
    wrong: Option<Error>,
}

impl Wanted {
    pub(super) fn add(&mut self, key: Result<Key>, mode: Mode) {
        match key {
            Ok(key) => self.members.push(Member { key, mode }),
            Err(error) => self.wrong = self.wrong.take().or(Some(error)),
        }
    }

    /// Returns the members in the order in which every client takes them, each once.
    pub(super) fn in_order(&self) -> Result<Vec<Member>> {
        if let Some(error) = &self.wrong {
            return Err(error.clone());
        }
        let mut members = self.members.clone();
        // Of one key the writer first: it is the one that stays.
        members.sort_by(|one, other| one.key.cmp(&other.key).then(is_reader(one).cmp(&is_reader(other))));
        members.dedup_by(|later, first| later.key == first.key);
        if members.len() > MAX_MEMBERS {
            let message = format!("a set of {} locks; the limit is {MAX_MEMBERS}", members.len());
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        Ok(members)
    }
}

fn is_reader(member: &Member) -> bool {
    member.mode == Mode::Read
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(names: &[(&str, Mode)]) -> Wanted {
        let mut wanted = Wanted::default();
        for (name, mode) in names {
            wanted.add(Key::new("g", *name), *mode);
        }
        wanted
    }

    #[test]
    fn a_name_that_is_wanted_twice_is_wanted_in_the_stronger_mode() {
        for twice in [[Mode::Read, Mode::Write], [Mode::Write, Mode::Read]] {
            let wanted = wanted(&[("b", Mode::Read), ("a", twice[0]), ("c", Mode::Read), ("a", twice[1])]);
            let members = wanted.in_order().unwrap();
            let seen: Vec<_> = members.iter().map(|member| (member.key.name(), member.mode)).collect();
            assert_eq!(seen, [("a", Mode::Write), ("b", Mode::Read), ("c", Mode::Read)]);
        }
    }

    #[test]
    fn a_set_has_a_limit_and_a_name_that_is_wanted_twice_counts_once() {
        let mut wanted = Wanted::default();
        for number in (0..MAX_MEMBERS).chain(0..MAX_MEMBERS) {
            wanted.add(Key::new("g", number), Mode::Read);
        }
        assert_eq!(wanted.in_order().unwrap().len(), MAX_MEMBERS);
        wanted.add(Key::new("g", "one more"), Mode::Read);
        let error = wanted.in_order().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains("1024"), "{error}");
    }

    #[test]
    fn the_first_bad_name_is_reported() {
        let mut wanted = wanted(&[("a", Mode::Write)]);
        wanted.add(Key::new("", "x"), Mode::Write);
        wanted.add(Key::new("g", ""), Mode::Write);
        assert!(wanted.in_order().unwrap_err().to_string().contains("group"));
    }
}
