//! Decides which contender may enter, from a look at those that conflict with it. Pure: no server, no clock.
//!
//! # Why two holders are impossible
//! A contender enters only after a look at a revision not before that of its own key, which showed no conflicting contender with a smaller place;
//! or which showed one alone, whose key it has then seen deleted. [`places`] says why that is enough, and what it asks of the store: the place
//! is the revision that made the key, so it is given once, and those that are given later are larger. Places are only ever given up: a writer
//! that becomes a reader keeps its key, and a contender that steps back (`strict`) has not entered, and makes a new key at the end. See
//! [`guarantees.md`](crate) for what becomes of keys.

use ylock_core::Mode;
use ylock_core::engine::AcquisitionId;
use ylock_core::queue::places;

use super::contender::Contender;

/// What one look has shown of the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Queue {
    /// The contenders with smaller places, the newest first: all that conflict, or the two newest of them at least.
    pub(crate) before: Vec<Contender>,
    /// Those with larger places: some, or all if tickets decide.
    pub(crate) behind: Vec<Contender>,
}

/// The outcome of a contender's look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The contender may enter. `contended`: another one that conflicts waits.
    Enters { contended: bool },
    /// The contender waits until `before` is gone. `last`: then none that conflicts is before it, and none ever will be. `next`: the one to wait
    /// for after that, as a guess.
    Waits { before: Contender, next: Option<Contender>, last: bool },
    /// The contender could enter, but one behind it came earlier.
    GivesWay,
}

pub(crate) fn judge(queue: &Queue, own: &Contender) -> Verdict {
    let Some(awaited) = places::awaited(&queue.before, own) else {
        return match queue.behind.iter().any(|other| came_before(other, own)) {
            true => Verdict::GivesWay,
            false => Verdict::Enters { contended: is_contended(queue, own, None) },
        };
    };
    let rivals: Vec<_> = places::before(&queue.before, own).collect();
    // With `strict` it has to look whether a contender behind it came earlier.
    let last = rivals.len() == 1 && own.ticket.is_none();
    let next = rivals.iter().filter(|other| ***other != *awaited).max_by_key(|other| other.place);
    Verdict::Waits { before: awaited.clone(), next: next.map(|next| (*next).clone()), last }
}

/// Returns whether a contender that conflicts waits behind `own`, which is inside. `own_next` does not count: it stands there for the same client.
pub(crate) fn is_contended(queue: &Queue, own: &Contender, own_next: Option<AcquisitionId>) -> bool {
    places::behind(&queue.behind, own).any(|other| Some(other.id) != own_next)
}

/// Returns whether enough of those before have been seen, if there are more.
pub(crate) fn is_enough(before: &[Contender], mode: Mode) -> bool {
    before.iter().filter(|other| other.mode.conflicts_with(mode)).count() >= 2
}

fn came_before(other: &Contender, own: &Contender) -> bool {
    matches!((other.ticket, own.ticket), (Some(other), Some(own)) if other < own)
        && other.mode.conflicts_with(own.mode)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(place: i64, mode: Mode) -> Contender {
        let id = AcquisitionId::from_u128(place as u128);
        Contender { key: place.to_string().into_bytes(), id, place, mode, ticket: None }
    }

    fn strict(place: i64, ticket: i64) -> Contender {
        Contender { ticket: Some(ticket), ..at(place, Mode::Write) }
    }

    fn queue(all: &[Contender], own: &Contender) -> Queue {
        let mut before: Vec<_> = all.iter().filter(|other| other.place < own.place).cloned().collect();
        before.reverse();
        Queue { before, behind: all.iter().filter(|other| other.place > own.place).cloned().collect() }
    }

    fn verdict(all: &[Contender], own: &Contender) -> Verdict {
        judge(&queue(all, own), own)
    }

    #[test]
    fn a_writer_waits_for_the_second_before_it_and_then_for_the_first() {
        let all = [at(1, Mode::Write), at(4, Mode::Read), at(9, Mode::Write)];
        let [a, b, c] = all.clone();
        assert_eq!(verdict(&all, &a), Verdict::Enters { contended: true });
        assert_eq!(verdict(&all, &b), Verdict::Waits { before: a.clone(), next: None, last: true });
        assert_eq!(
            verdict(&all, &c),
            Verdict::Waits { before: a.clone(), next: Some(b.clone()), last: false }
        );
        assert_eq!(
            verdict(&[b.clone(), c.clone()], &c),
            Verdict::Waits { before: b, next: None, last: true }
        );
        assert_eq!(verdict(std::slice::from_ref(&c), &c), Verdict::Enters { contended: false });
    }

    #[test]
    fn readers_enter_together_up_to_the_first_writer_that_still_is_one() {
        let mut all = [at(1, Mode::Read), at(2, Mode::Write), at(3, Mode::Read), at(4, Mode::Read)];
        assert_eq!(verdict(&all, &all[0]), Verdict::Enters { contended: true });
        assert!(matches!(verdict(&all, &all[2]), Verdict::Waits { last: true, .. }));
        all[1].mode = Mode::Read;
        assert_eq!(verdict(&all, &all[3]), Verdict::Enters { contended: false });
    }

    /// Of every set of contenders only one writer, or only readers, may be inside at once, and some are.
    #[test]
    fn no_two_that_conflict_may_enter() {
        for modes in 0..1 << 7_u32 {
            let mode = |i: i64| if modes & (1 << i) == 0 { Mode::Read } else { Mode::Write };
            let all: Vec<_> = (0..7).map(|i| at(i + 1, mode(i))).collect();
            let inside: Vec<_> =
                all.iter().filter(|own| matches!(verdict(&all, own), Verdict::Enters { .. })).collect();
            assert!(!inside.is_empty());
            for one in &inside {
                assert!(places::rivals(&all, one).all(|other| !inside.contains(&other)), "{inside:?}");
            }
        }
    }

    #[test]
    fn a_strict_one_gives_way_only_when_it_could_enter_and_only_to_one_that_came_earlier() {
        let [late, early] = [strict(1, 50), strict(2, 40)];
        let both = [late.clone(), early.clone()];
        assert_eq!(verdict(&both, &late), Verdict::GivesWay);
        assert!(matches!(verdict(&both, &early), Verdict::Waits { last: false, .. }));
        let [first, fair] = [strict(1, 30), at(2, Mode::Write)];
        assert_eq!(verdict(&[first.clone(), early.clone()], &first), Verdict::Enters { contended: true });
        assert_eq!(verdict(&[late.clone(), fair], &late), Verdict::Enters { contended: true });
    }

    #[test]
    fn the_own_next_does_not_count_as_another_contender() {
        let [own, next, other] = [at(1, Mode::Read), at(2, Mode::Write), at(3, Mode::Write)];
        let seen = |all: &[Contender]| queue(all, &own);
        assert!(!is_contended(&seen(std::slice::from_ref(&next)), &own, Some(next.id)));
        assert!(is_contended(&seen(std::slice::from_ref(&next)), &own, None));
        assert!(is_contended(&seen(&[next.clone(), other]), &own, Some(next.id)));
        assert!(!is_contended(&seen(&[at(4, Mode::Read)]), &own, None));
    }
}
