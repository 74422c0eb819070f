//! The notebook beside what it is meant to say, word by word.

use std::collections::BTreeSet;

use ylock_core::Mode;

use super::*;
use crate::algorithm::rows_for_tests as rows;
use crate::algorithm::store::Row;

const OWN: Slot = Slot::from_u128(0);
const LEASE: u64 = 10;

fn at(seconds: u64) -> Moment {
    Moment::from_nanos(seconds * 1_000_000_000)
}

fn seen(slot: u128, heartbeat: i64, lease: u64, state: State) -> SeenRow {
    let row = Row { lease: Duration::from_secs(lease), ..rows::row(1, Mode::Write, state, 1) };
    SeenRow { heartbeat: Some(heartbeat), ..rows::seen(slot, row) }
}

fn held(heartbeat: i64) -> SeenRow {
    seen(1, heartbeat, LEASE, State::Held)
}

fn look(rows: impl IntoIterator<Item = SeenRow>) -> Partition {
    Partition { rows: rows.into_iter().collect(), ..Partition::default() }
}

/// Notes looks of one row: what it shows, and when the look begins and ends.
fn after(looks: &[(SeenRow, u64, u64)]) -> Notebook {
    let mut notebook = Notebook::default();
    for (row, began, ended) in looks {
        notebook.note(&look([row.clone()]), OWN, (at(*began), at(*ended)), true);
    }
    notebook
}

#[test]
fn a_heartbeat_is_dead_a_lease_after_it_was_first_seen() {
    assert_eq!(after(&[(held(1), 0, 0), (held(1), 9, 9)]).dead(&held(1)), None);
    let dead = Dead {
        slot: Slot::from_u128(1),
        heartbeat: 1,
        lease: Duration::from_secs(LEASE),
        since: Duration::from_secs(2),
    };
    assert_eq!(after(&[(held(1), 0, 0), (held(1), 12, 12)]).dead(&held(1)), Some(dead));
}

/// The heartbeat may have been sent when the first look was nearly over.
#[test]
fn the_lease_counts_from_the_end_of_the_first_look() {
    assert_eq!(after(&[(held(1), 0, 5), (held(1), 14, 14)]).dead(&held(1)), None);
    assert!(after(&[(held(1), 0, 5), (held(1), 15, 15)]).dead(&held(1)).is_some());
}

/// A later heartbeat may have been acknowledged after the look began, and need not be shown.
#[test]
fn the_lease_counts_to_the_beginning_of_the_second_look() {
    assert_eq!(after(&[(held(1), 0, 0), (held(1), 9, 30)]).dead(&held(1)), None);
}

/// One look says nothing, however long it took.
#[test]
fn one_look_is_not_two() {
    assert_eq!(after(&[(held(1), 0, 100)]).dead(&held(1)), None);
}

#[test]
fn a_heartbeat_that_changes_lives() {
    let notebook = after(&[(held(1), 0, 0), (held(2), 9, 9), (held(2), 18, 18)]);
    assert_eq!(notebook.dead(&held(2)), None);
    assert_eq!(notebook.dead(&held(1)), None, "it is not what is noted");
    assert_eq!(notebook.due(&held(2)), Some(at(19)));
}

/// Two quorums may show an unacknowledged heartbeat, and not show it again, in turns.
#[test]
fn a_replica_that_is_behind_takes_nothing_back() {
    let notebook = after(&[(held(2), 0, 0), (held(1), 5, 5), (held(2), 10, 10)]);
    assert!(notebook.dead(&held(2)).is_some());
    assert_eq!(notebook.dead(&held(1)), None);
}

/// The holder relies on its own lease, not on that of the client that looks.
#[test]
fn the_lease_is_that_of_the_row() {
    let long = seen(1, 1, 3 * LEASE, State::Held);
    assert_eq!(after(&[(long.clone(), 0, 0), (long.clone(), 29, 29)]).dead(&long), None);
    assert!(after(&[(long.clone(), 0, 0), (long.clone(), 30, 30)]).dead(&long).is_some());
}

#[test]
fn idle_rows_and_the_own_row_are_not_watched() {
    for row in [seen(1, 1, LEASE, State::Idle), seen(0, 1, LEASE, State::Held)] {
        let notebook = after(&[(row.clone(), 0, 0), (row.clone(), 20, 20)]);
        assert_eq!((notebook.dead(&row), notebook.forgotten()), (None, Moment::ZERO));
    }
}

#[test]
fn what_is_not_shown_for_two_leases_is_forgotten() {
    let mut notebook = after(&[(held(1), 0, 0), (held(1), 5, 5)]);
    assert_eq!(notebook.forgotten(), at(25));
    notebook.note(&look([]), OWN, (at(24), at(24)), true);
    assert!(notebook.due(&held(1)).is_some());
    notebook.note(&look([]), OWN, (at(25), at(25)), true);
    assert_eq!(notebook.due(&held(1)), None);
}

#[test]
fn a_row_that_was_forgotten_is_watched_anew() {
    let mut notebook = after(&[(held(1), 0, 0), (held(1), 12, 12)]);
    notebook.forget(Slot::from_u128(1));
    notebook.note(&look([held(1)]), OWN, (at(13), at(13)), true);
    assert_eq!((notebook.dead(&held(1)), notebook.due(&held(1))), (None, Some(at(23))));
}

/// A generator that needs no crate: the same numbers in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// What one look has shown: slot, heartbeat and lease of a row, and when the look began and ended.
type Shown = (u128, i64, u64, u64, u64);

/// Whether these looks show a death, by the words of the rule.
fn is_dead(shown: &[Shown], slot: u128, heartbeat: i64) -> bool {
    let of_it = || shown.iter().filter(|(other, beat, ..)| (*other, *beat) == (slot, heartbeat));
    of_it().any(|&(_, _, lease, _, ended)| of_it().any(|&(_, _, _, began, _)| began >= ended + lease))
}

/// Whatever the looks show: what the notebook calls dead is dead by the rule; and what is shown often enough, and never forgotten, it calls dead.
#[test]
fn random_looks_are_judged_by_the_rule() {
    let mut deaths = 0;
    for seed in 0..2_000 {
        let mut numbers = Numbers(seed);
        let (mut notebook, mut shown, mut now) = (Notebook::default(), Vec::<Shown>::new(), 0);
        // A row's lease never changes while its heartbeat does not.
        let lease_of = |slot: u128, heartbeat: i64| 3 + (slot as u64 * 7 + heartbeat as u64 * 5) % 9;
        for _ in 0..40 {
            let began = now + numbers.below(4);
            now = began + numbers.below(3);
            let mut slots = BTreeSet::from([1_u128, 2, 3]);
            slots.retain(|_| numbers.below(4) > 0);
            let rows: Vec<_> = slots
                .into_iter()
                .map(|slot| {
                    let heartbeat = (now / 12) as i64 + 1 - (numbers.below(5) == 0) as i64;
                    seen(slot, heartbeat, lease_of(slot, heartbeat), State::Claimed)
                })
                .collect();
            notebook.note(&look(rows.clone()), OWN, (at(began), at(now)), true);
            for row in rows {
                let (slot, heartbeat) = (row.slot.as_u128(), row.heartbeat.unwrap());
                shown.push((slot, heartbeat, lease_of(slot, heartbeat), began, now));
                let dead = notebook.dead(&row).is_some();
                deaths += usize::from(dead);
                assert!(!dead || is_dead(&shown, slot, heartbeat), "seed {seed}: {shown:?}");
                let largest = shown.iter().filter(|(other, ..)| *other == slot).map(|shown| shown.1).max();
                if largest == Some(heartbeat) && is_dead(&shown, slot, heartbeat) {
                    assert!(dead || was_away(&shown, slot, heartbeat), "seed {seed}: {shown:?}");
                }
            }
        }
    }
    assert!(deaths > 1_000, "{deaths}");
}

/// Whether a heartbeat was not shown for so long that it was forgotten.
fn was_away(shown: &[Shown], slot: u128, heartbeat: i64) -> bool {
    let of_it: Vec<_> =
        shown.iter().filter(|(other, beat, ..)| (*other, *beat) == (slot, heartbeat)).collect();
    of_it.windows(2).any(|pair| pair[1].4 >= pair[0].3 + 2 * pair[0].2)
}

/// What a client has left is not watched for another two leases, which may be days.
#[test]
fn a_row_that_was_left_is_not_worth_remembering() {
    let idle = |heartbeat| seen(1, heartbeat, LEASE, State::Idle);
    assert_eq!(after(&[(held(2), 0, 0), (idle(3), 1, 1)]).len(), 0);
    // A replica that is behind shows what was there before; it says nothing of what came after.
    assert_eq!(after(&[(held(2), 0, 0), (idle(1), 1, 1)]).len(), 1);
    assert_eq!(after(&[(held(2), 0, 0), (idle(3), 1, 1), (held(2), 2, 2)]).len(), 1);
}

/// Only one replica has heard that it was left, and no look repairs the others.
#[test]
fn a_row_that_is_shown_now_as_left_and_now_as_held_is_not_watched_anew() {
    let idle = seen(1, 3, LEASE, State::Idle);
    let looks = [(held(2), 0, 0), (idle.clone(), 4, 4), (held(2), 6, 6), (idle, 8, 8), (held(2), 10, 10)];
    assert!(after(&looks).dead(&held(2)).is_some());
}

/// It may be remembered for as long as the own row is anyway, but is no reason to keep that.
#[test]
fn what_stood_in_no_way_is_not_worth_remembering() {
    let mut notebook = Notebook::default();
    notebook.note(&look([held(1)]), OWN, (at(0), at(0)), false);
    assert_eq!((notebook.len(), notebook.forgotten()), (0, Moment::ZERO));
    notebook.note(&look([held(2)]), OWN, (at(5), at(5)), true);
    assert_eq!((notebook.len(), notebook.forgotten()), (1, at(5 + 2 * LEASE)));
    notebook.note(&look([held(3)]), OWN, (at(6), at(6)), false);
    assert_eq!(notebook.len(), 1, "it is still in the way");
    notebook.enters();
    assert_eq!(notebook.len(), 0);
    notebook.note(&look([held(3)]), OWN, (at(6 + LEASE), at(6 + LEASE)), false);
    assert!(notebook.dead(&held(3)).is_some(), "what is noted counts all the same");
}
