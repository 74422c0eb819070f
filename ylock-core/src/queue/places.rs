//! Whose turn it is, from the places of all contenders: for stores that give each one that comes a larger place than all before, and
//! remember nothing else. Who holds is then decided by the places too: it is each contender with no rival before it.
//!
//! # Why no two that conflict are inside at once
//! Of two contenders that conflict, only the one with the lower place has no rival before it. So the one with the larger place stays outside
//! for as long as its looks show the other one. The store must see to two things. A place is given once, and those that are given later are
//! larger. And a look that began when a contender had its place shows every contender with a lower place that is still there; it may show
//! some that have gone.
//!
//! A contender may give its place up, and may become a reader in its place, because it conflicts with fewer others then. It may not become a
//! writer.

use crate::mode::Mode;

/// A contender, as the store shows it.
pub trait Placed: PartialEq {
    /// Returns its place.
    fn place(&self) -> i64;

    /// Returns its mode.
    fn mode(&self) -> Mode;
}

/// Returns the other contenders that conflict with `own`, in the order of `all`.
pub fn rivals<'a, C: Placed>(all: &'a [C], own: &'a C) -> impl Iterator<Item = &'a C> {
    all.iter().filter(move |other| *other != own && other.mode().conflicts_with(own.mode()))
}

/// Returns the rivals that `own` waits for. No store gives a place twice; if one did, neither of the two would enter.
pub fn before<'a, C: Placed>(all: &'a [C], own: &'a C) -> impl Iterator<Item = &'a C> {
    rivals(all, own).filter(|other| other.place() <= own.place())
}

/// Returns the rivals that wait for `own`.
pub fn behind<'a, C: Placed>(all: &'a [C], own: &'a C) -> impl Iterator<Item = &'a C> {
    rivals(all, own).filter(|other| other.place() > own.place())
}

/// Returns the rival to wait for: the second before `own`, or the only one. When the second has left, the first is inside as a rule. So `own`
/// looks again while that one holds, and then waits for it alone: between its release and the entry there is no look. A contender that leaves
/// wakes two others, and not all. One that is further away is found by the look that follows.
pub fn awaited<'a, C: Placed>(all: &'a [C], own: &'a C) -> Option<&'a C> {
    let mut nearest: Vec<_> = before(all, own).collect();
    nearest.sort_unstable_by_key(|other| std::cmp::Reverse(other.place()));
    nearest.get(1).or(nearest.first()).copied()
}

/// Returns whether `own` may enter, or is inside.
pub fn holds<C: Placed>(all: &[C], own: &C) -> bool {
    before(all, own).next().is_none()
}

/// Returns whether a newcomer with this mode would not have to wait.
pub fn is_free<C: Placed>(all: &[C], mode: Mode) -> bool {
    !all.iter().any(|other| other.mode().conflicts_with(mode))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq)]
    struct At(i64, Mode);

    impl Placed for At {
        fn place(&self) -> i64 {
            self.0
        }

        fn mode(&self) -> Mode {
            self.1
        }
    }

    /// Returns contenders with these modes, `w` or `r`, at places that grow. The store lists them in any order: here the last one first.
    fn listed(modes: &str) -> Vec<At> {
        let mode = |letter| if letter == 'w' { Mode::Write } else { Mode::Read };
        let mut all: Vec<_> = (0..).zip(modes.chars()).map(|(at, letter)| At(at * 3, mode(letter))).collect();
        all.reverse();
        all
    }

    fn at<const N: usize>(all: &[At], place: i64) -> ([i64; N], Option<i64>) {
        let own = all.iter().find(|one| one.0 == place).unwrap();
        let mut waits_for: Vec<_> = before(all, own).map(Placed::place).collect();
        waits_for.sort_unstable();
        (waits_for.try_into().unwrap(), awaited(all, own).map(Placed::place))
    }

    #[test]
    fn a_writer_waits_for_all_before_it_and_a_reader_for_the_writers_the_second_first() {
        let all = listed("rrwrw");
        assert_eq!(at(&all, 0), ([], None));
        assert_eq!(at(&all, 3), ([], None));
        assert_eq!(at(&all, 6), ([0, 3], Some(0)));
        assert_eq!(at(&all, 9), ([6], Some(6)));
        assert_eq!(at(&all, 12), ([0, 3, 6, 9], Some(6)));
    }

    #[test]
    fn those_behind_are_the_rivals_that_wait_for_this_one() {
        let all = listed("rrwr");
        let count = |place| behind(&all, all.iter().find(|one| one.0 == place).unwrap()).count();
        assert_eq!([count(0), count(3), count(6), count(9)], [1, 1, 1, 0]);
    }

    #[test]
    fn a_newcomer_waits_if_it_conflicts_with_any() {
        assert!(is_free(&listed(""), Mode::Write) && is_free(&listed("rr"), Mode::Read));
        assert!(!is_free(&listed("rr"), Mode::Write) && !is_free(&listed("rw"), Mode::Read));
    }

    #[test]
    fn of_two_with_one_place_neither_enters() {
        let all = [At(7, Mode::Write), At(7, Mode::Read)];
        assert!(all.iter().all(|own| !holds(&all, own)));
    }

    /// In each queue of seven: those that hold do not conflict, there are some, and each that waits has a rival before it.
    #[test]
    fn only_contenders_that_do_not_conflict_hold_and_some_always_do() {
        for bits in 0..1 << 7_u32 {
            let modes: String = (0..7).map(|i| if bits & (1 << i) == 0 { 'r' } else { 'w' }).collect();
            let all = listed(&modes);
            let inside: Vec<_> = all.iter().filter(|own| holds(&all, own)).collect();
            assert!(!inside.is_empty(), "{modes}");
            for one in &inside {
                assert!(rivals(&all, one).all(|other| !inside.contains(&other)), "{modes}: {inside:?}");
            }
            for own in all.iter().filter(|own| !inside.contains(own)) {
                assert!(awaited(&all, own).is_some_and(|other| other.0 < own.0), "{modes}: {own:?}");
            }
        }
    }

    /// In whichever order holders leave, each comes in, and none after a rival that came later.
    #[test]
    fn each_comes_in_and_no_rival_that_came_later_before_it() {
        for bits in 0..1 << 6_u32 {
            let modes: String = (0..6).map(|i| if bits & (1 << i) == 0 { 'r' } else { 'w' }).collect();
            let (mut all, mut served) = (listed(&modes), Vec::new());
            while !all.is_empty() {
                let leaves = all.iter().position(|own| holds(&all, own)).expect("one is inside");
                served.push(all.remove(leaves));
            }
            for (turn, one) in served.iter().enumerate() {
                let overtaken = before(&served[turn..], one).next();
                assert!(overtaken.is_none(), "{modes}: {one:?} before {overtaken:?}");
            }
        }
    }
}
