//! Decides which contender may enter, from the names of all contenders of a lock. Pure: no server, no clock.
//!
//! # Why two holders are impossible
//! A contender enters only after a look that began when its own node was there, and that showed no conflicting contender with a lower
//! place. [`places`] says why that is enough, and what it asks of the store. The server makes children one after the other, and gives each a
//! larger place than all before. Take two contenders that conflict, A with the lower place and B. B's node was made after A's, so every
//! look of B shows A for as long as A's node is there; a look that is stale shows only more contenders before B, never fewer (a session
//! sees its own write, and so all writes before it). So B enters only when A's node is gone: A gave it back, or A's session ended, and A's
//! validity ended before that (see [`guarantees.md`](crate)).
//!
//! A contender that waits for a single other contender, and sees how the node of that one is removed, need not look again: no
//! conflicting contender can have come before it. It has to see the removal itself, see [`WatchEvent`](super::store::WatchEvent).
//!
//! Places are only ever given up. A writer that becomes a reader keeps its place, in one transaction, and conflicts with fewer
//! contenders than before. With `strict`, a contender that could enter and sees behind it one that came earlier makes a new node at the
//! end and removes its old one, in one transaction: it had not entered, and its next look shows every contender that conflicts with it
//! and is now before it.

use ylock_core::Mode;
use ylock_core::engine::AcquisitionId;
use ylock_core::queue::places::{self, Placed};

use super::node::{Name, Tag};

/// The first place that is not used: the server's counter ends soon after it, and then gives the same place to all. When all contenders
/// have left, the lock's node is removed, and its next node counts from zero.
const LAST_PLACE: i32 = 2_000_000_000;

/// The outcome of a contender's look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The contender may enter. `contended`: another one that conflicts waits.
    Enters { contended: bool },
    /// The contender waits until `before` is gone. `last`: then none that conflicts is before it, and none ever will be, so it need not
    /// look again.
    Waits { before: Name, last: bool },
    /// The contender could enter, but one behind it came earlier.
    GivesWay,
    /// The contender's own node is not there.
    Gone,
    /// The counter of places has nearly run out.
    SequenceExhausted,
}

pub(crate) fn judge(all: &[Name], own: &Name) -> Verdict {
    if !all.contains(own) {
        return Verdict::Gone;
    }
    if !(0..LAST_PLACE).contains(&own.place) {
        return Verdict::SequenceExhausted;
    }
    if let Some(awaited) = places::awaited(all, own) {
        // With `strict` it has to look whether a contender behind it came earlier.
        let last = places::before(all, own).count() == 1 && own.tag.ticket.is_none();
        return Verdict::Waits { before: *awaited, last };
    }
    match places::behind(all, own).any(|other| came_before(other, own)) {
        true => Verdict::GivesWay,
        false => Verdict::Enters { contended: is_contended(all, own, None) },
    }
}

/// Returns whether a contender that conflicts waits behind `own`, whose node lets it enter. `own_next` does not count: it stands there for
/// the same client.
pub(crate) fn is_contended(all: &[Name], own: &Name, own_next: Option<AcquisitionId>) -> bool {
    places::behind(all, own).any(|other| Some(other.tag.id) != own_next)
}

/// Returns the node that an acquisition has from this session.
pub(crate) fn find(all: &[Name], tag: &Tag) -> Option<Name> {
    all.iter().find(|other| other.tag.is_of(tag)).copied()
}

impl Placed for Name {
    fn place(&self) -> i64 {
        self.place.into()
    }

    fn mode(&self) -> Mode {
        self.tag.mode
    }
}

fn came_before(other: &Name, own: &Name) -> bool {
    matches!((other.tag.ticket, own.tag.ticket), (Some(other), Some(own)) if other < own)
}

#[cfg(test)]
mod tests {
    use ylock_core::queue::places::{holds, is_free, rivals};

    use super::*;

    fn name(mode: Mode, id: u128, place: i32) -> Name {
        let tag = Tag { mode, id: AcquisitionId::from_u128(id), session: 1, ticket: None };
        Name { tag, place }
    }

    fn strict(id: u128, place: i32, ticket: i64) -> Name {
        let mut name = name(Mode::Write, id, place);
        name.tag.ticket = Some(ticket);
        name
    }

    fn last(before: Name) -> Verdict {
        Verdict::Waits { before, last: true }
    }

    const ALONE: Verdict = Verdict::Enters { contended: false };
    const CONTENDED: Verdict = Verdict::Enters { contended: true };

    #[test]
    fn a_writer_waits_for_the_second_before_it_and_then_for_the_first_whatever_they_do() {
        let [a, b, c] = [name(Mode::Write, 1, 3), name(Mode::Read, 2, 5), name(Mode::Write, 3, 9)];
        assert_eq!(judge(&[c, a, b], &a), CONTENDED);
        assert_eq!(judge(&[c, a, b], &b), last(a));
        assert_eq!(judge(&[c, a, b], &c), Verdict::Waits { before: a, last: false });
        assert_eq!(judge(&[c, b], &c), last(b));
        assert_eq!(judge(&[c, a], &c), last(a));
        assert_eq!(judge(&[c], &c), ALONE);
    }

    #[test]
    fn readers_enter_together_up_to_the_first_writer() {
        let all = [
            name(Mode::Read, 1, 1),
            name(Mode::Read, 2, 2),
            name(Mode::Write, 3, 3),
            name(Mode::Read, 4, 4),
            name(Mode::Write, 5, 5),
            name(Mode::Read, 6, 6),
        ];
        assert_eq!(judge(&all, &all[0]), CONTENDED);
        assert_eq!(judge(&all, &all[1]), CONTENDED);
        assert_eq!(judge(&all, &all[3]), last(all[2]));
        assert_eq!(judge(&all, &all[5]), Verdict::Waits { before: all[2], last: false });
        assert_eq!(judge(&all[..2], &all[1]), ALONE);
        assert!(
            is_free(&all[..2], Mode::Read) && !is_free(&all[..2], Mode::Write) && !is_free(&all, Mode::Read)
        );
        let holding: Vec<_> = all.iter().map(|name| holds(&all, name)).collect();
        assert_eq!(holding, [true, true, false, false, false, false]);
    }

    /// Of every set of contenders only one writer, or only readers, may be inside at once.
    #[test]
    fn no_two_who_conflict_may_enter() {
        for modes in 0..1 << 7_u32 {
            let mode = |i: u32| if modes & (1 << i) == 0 { Mode::Read } else { Mode::Write };
            let all: Vec<_> = (0..7).map(|i| name(mode(i), u128::from(i), i as i32)).collect();
            let inside: Vec<_> =
                all.iter().filter(|own| matches!(judge(&all, own), Verdict::Enters { .. })).collect();
            assert!(!inside.is_empty());
            for one in &inside {
                assert!(rivals(&all, one).all(|other| !inside.contains(&other)), "{inside:?}");
            }
        }
    }

    #[test]
    fn only_the_own_node_of_this_session_counts_as_own() {
        let mut old = name(Mode::Write, 1, 1);
        old.tag.session = 0;
        let own = name(Mode::Write, 1, 2);
        assert_eq!(judge(&[old, own], &own), last(old));
        assert_eq!(judge(&[old], &own), Verdict::Gone);
        assert_eq!(find(&[old, own], &own.tag), Some(own));
        assert_eq!(find(&[old], &own.tag), None);
    }

    #[test]
    fn a_strict_one_gives_way_only_when_it_could_enter_and_only_to_one_who_came_earlier() {
        let [late, early] = [strict(1, 1, 50), strict(2, 2, 40)];
        assert_eq!(judge(&[late, early], &late), Verdict::GivesWay);
        assert_eq!(judge(&[late, early], &early), Verdict::Waits { before: late, last: false });
        assert_eq!(judge(&[strict(1, 1, 30), early], &strict(1, 1, 30)), CONTENDED);
        assert_eq!(judge(&[late, name(Mode::Write, 2, 2)], &late), CONTENDED);
        assert_eq!(
            judge(&[name(Mode::Write, 3, 0), late, early], &late),
            Verdict::Waits { before: name(Mode::Write, 3, 0), last: false }
        );
    }

    #[test]
    fn the_own_next_does_not_count_as_another_contender() {
        let [own, next, other] = [name(Mode::Read, 1, 1), name(Mode::Write, 2, 2), name(Mode::Write, 3, 3)];
        assert!(!is_contended(&[own, next], &own, Some(next.tag.id)));
        assert!(is_contended(&[own, next], &own, None));
        assert!(is_contended(&[own, next, other], &own, Some(next.tag.id)));
        assert!(!is_contended(&[own, name(Mode::Read, 4, 4)], &own, None));
    }

    #[test]
    fn no_contender_enters_on_a_place_at_the_end_of_the_counter() {
        for place in [LAST_PLACE, i32::MAX, -5] {
            let own = name(Mode::Write, 1, place);
            assert_eq!(judge(&[own], &own), Verdict::SequenceExhausted);
        }
    }
}
