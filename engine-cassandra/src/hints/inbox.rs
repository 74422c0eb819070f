//! What the hints for one own row ask of its client.

use std::net::SocketAddr;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use ylock_core::environment::Moment;

use super::Endpoint;
use super::budget::Budget;
use super::datagram::{Hint, Key};

/// The most waiters that are remembered because they have said that they wait: what others say must not fill the memory.
const MOST_WAITERS: usize = 32;
/// The time that the first in line has before the second one looks, if nothing is known of how long looks take.
const SECOND_LATER: Duration = Duration::from_millis(5);

/// The inbox of one own row; see the [module](self).
#[derive(Debug)]
pub(crate) struct Inbox {
    /// The key of the lock.
    pub(super) lock: ylock_core::Key,
    state: Mutex<State>,
    /// Rung when a hint has changed what is asked for.
    bell: Notify,
}

/// Waiters that have said that they wait, and when each of them said so last, in the order in which they came.
type Waiters = Vec<(Waiter, Moment)>;

#[derive(Debug, Default)]
struct State {
    /// The key under which hints come at present.
    key: Option<Key>,
    /// The key before, of an acquisition that has left: a waiter may have seen it a moment ago, and say so only now.
    left: Option<Key>,
    /// True when a quorum has the write that left.
    is_gone: bool,
    /// Those that have said to the acquisition that leaves that they wait, before a quorum had that write.
    late: Waiters,
    /// The moment from which on a look is asked for.
    asked: Option<Moment>,
    /// The sender of the last hint that asked for a look and was not only for the second in line.
    told_by: Option<SocketAddr>,
    /// True if a hint has told of a turn since this was last asked.
    was_told: bool,
    budget: Budget,
    waiters: Waiters,
    /// True while the client is inside, and its last look has shown no waiter that conflicts.
    seems_alone: bool,
    /// Those that were told that the client is inside, and when.
    inside_told: Option<(Vec<Key>, Moment)>,
    /// The time that the first in line has before the second one looks.
    second_later: Duration,
    /// For how long a waiter is remembered.
    remembered_for: Duration,
}

/// A waiter that has said that it waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waiter {
    pub(crate) key: Key,
    pub(crate) address: SocketAddr,
    pub(crate) reads: bool,
}

/// What becomes of a hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It is followed, or changes nothing.
    Taken,
    /// The client shall renew what it holds.
    Renew,
    /// The client has just entered: the waiter, which may not have seen that, shall look now.
    HasEntered(Waiter),
    /// The client has left: the waiter shall look now.
    Answer(Waiter),
    /// It is more than the budget allows, or about what is over.
    Dropped,
}

impl Waiter {
    /// Returns where it can be told something.
    pub(crate) fn endpoint(self) -> Endpoint {
        Endpoint { address: self.address, key: self.key }
    }
}

impl Inbox {
    pub(crate) fn new(lock: ylock_core::Key) -> Self {
        Self { lock, state: Mutex::default(), bell: Notify::new() }
    }

    /// Makes hints come under this key from now on. Returns the one that is not known any more. What came under the one before was about
    /// another acquisition.
    pub(super) fn change_key(&self, key: Option<Key>, lease: Duration) -> Option<Key> {
        let mut state = self.state.lock();
        if state.key == key {
            return None;
        }
        (state.asked, state.seems_alone, state.remembered_for) = (None, false, lease * 2);
        (state.inside_told, state.told_by) = (None, None);
        state.waiters.clear();
        let before = std::mem::replace(&mut state.key, key)?;
        state.is_gone = false;
        state.late.clear();
        state.left.replace(before)
    }

    /// Notes that a quorum has the write by which the acquisition before has left. Returns those that have said to it that they wait since that was
    /// decided: no look has shown them.
    pub(crate) fn has_gone(&self) -> Vec<Waiter> {
        let mut state = self.state.lock();
        state.is_gone = true;
        std::mem::take(&mut state.late).into_iter().map(|(waiter, _)| waiter).collect()
    }

    /// Returns the keys under which hints come.
    pub(super) fn keys(&self) -> impl Iterator<Item = Key> + use<> {
        let state = self.state.lock();
        state.key.into_iter().chain(state.left)
    }

    /// Takes a hint that came under this key.
    pub(super) fn take(&self, to: Key, hint: Hint, from: SocketAddr, now: Moment) -> Outcome {
        let mut state = self.state.lock();
        let outcome = match hint {
            Hint::Wait { from: key, reads } if state.key != Some(to) => {
                state.come_late(Waiter { key, address: from, reads }, now)
            }
            // What makes room for the acquisition before makes room for the present one, too, whose key is not known everywhere yet.
            Hint::Free { .. } | Hint::Next if state.key.is_some() => state.told_to_look(hint, from, now),
            _ if state.key != Some(to) => Outcome::Dropped,
            Hint::Wait { from: key, reads } => state.remember(Waiter { key, address: from, reads }, now),
            // The row has left.
            Hint::Free { .. } | Hint::Next => Outcome::Dropped,
            Hint::End => state.ask_for_a_renewal(now),
        };
        drop(state);
        self.bell.notify_one();
        outcome
    }

    /// Returns the moment at which a look shall begin that hints have asked for.
    pub(crate) fn look_at(&self) -> Option<Moment> {
        let state = self.state.lock();
        state.asked.map(|asked| asked.max(state.budget.next()))
    }

    /// Returns the sender of the last hint that asks for a look and was not only for the second in line, if there is one.
    pub(crate) fn told_by(&self) -> Option<SocketAddr> {
        self.state.lock().told_by
    }

    /// Waits until what is asked for may have changed.
    pub(crate) async fn changed(&self) {
        self.bell.notified().await;
    }

    /// Notes that a look begins now: hints that come from here on may tell of what it does not show. `by_hint`: hints have asked for it.
    pub(crate) fn look_begins(&self, by_hint: bool, second_later: Duration, now: Moment) {
        let mut state = self.state.lock();
        (state.asked, state.second_later, state.told_by) = (None, second_later, None);
        if by_hint {
            state.budget.spend(now);
        }
    }

    /// Notes that the look which a hint had asked for has found what that told of.
    pub(crate) fn was_right(&self) {
        self.state.lock().budget.refund();
    }

    /// Returns whether a hint has told of a turn since this was last asked.
    pub(crate) fn was_told(&self) -> bool {
        std::mem::take(&mut self.state.lock().was_told)
    }

    /// Notes that these are told now that the client is inside.
    pub(crate) fn is_shown_inside(&self, told: Vec<Key>, now: Moment) {
        self.state.lock().inside_told = Some((told, now));
    }

    /// Notes whether the client is inside and knows of no waiter: then one that says that it waits is news.
    pub(crate) fn seems_alone(&self, seems_alone: bool) {
        self.state.lock().seems_alone = seems_alone;
    }

    /// Notes that the client is inside for reading, and that its look has shown no writer. Returns whether one has said that it waits.
    pub(crate) fn expect_writers(&self, now: Moment) -> bool {
        let mut state = self.state.lock();
        state.forget_waiters(now);
        let has_come = state.waiters.iter().any(|(waiter, _)| !waiter.reads);
        state.seems_alone = !has_come;
        has_come
    }

    /// Returns the waiters that have said that they wait, in the order in which they did.
    pub(crate) fn waiters(&self, now: Moment) -> Vec<Waiter> {
        let mut state = self.state.lock();
        state.forget_waiters(now);
        state.waiters.iter().map(|(waiter, _)| *waiter).collect()
    }
}

impl State {
    fn told_to_look(&mut self, hint: Hint, from: SocketAddr, now: Moment) -> Outcome {
        let is_second = hint == Hint::Free { second: true };
        self.told_by = if is_second { self.told_by } else { Some(from) };
        let later = if is_second { self.second_later.max(SECOND_LATER) } else { Duration::ZERO };
        self.ask_for_a_look(now.plus(later), now)
    }

    fn ask_for_a_look(&mut self, at: Moment, now: Moment) -> Outcome {
        self.was_told = true;
        let is_too_much = self.asked.is_some() && self.budget.next() > now;
        self.asked = Some(self.asked.map_or(at, |asked| asked.min(at)));
        // What is asked for already is asked for once, and a hint that came too early is followed as soon as the budget allows.
        if is_too_much { Outcome::Dropped } else { Outcome::Taken }
    }

    fn ask_for_a_renewal(&mut self, now: Moment) -> Outcome {
        if self.budget.next() > now {
            return Outcome::Dropped;
        }
        self.budget.spend(now);
        Outcome::Renew
    }

    /// Handles a waiter that has seen what has left since.
    fn come_late(&mut self, waiter: Waiter, now: Moment) -> Outcome {
        if self.is_gone && self.budget.next() <= now {
            self.budget.spend(now);
            return Outcome::Answer(waiter);
        }
        if self.is_gone {
            return Outcome::Dropped;
        }
        // Two of those that come late are told: one that says so twice is one of them, in its place.
        if note(&mut self.late, waiter, now).is_some() { Outcome::Taken } else { Outcome::Dropped }
    }

    fn remember(&mut self, waiter: Waiter, now: Moment) -> Outcome {
        self.forget_waiters(now);
        let Some(is_new) = note(&mut self.waiters, waiter, now) else { return Outcome::Dropped };
        // Only readers expect any, and they conflict with writers only.
        let is_news = !waiter.reads && std::mem::take(&mut self.seems_alone);
        if is_news {
            return self.ask_for_a_renewal(now);
        }
        // Once for each waiter: one that is told looks, and may say again that it waits.
        if is_new && self.has_just_entered(waiter.key, now) && self.budget.next() <= now {
            self.budget.spend(now);
            return Outcome::HasEntered(waiter);
        }
        Outcome::Taken
    }

    /// Returns whether a look of this waiter that ended a moment ago may not have shown yet that the client is inside, or in which mode, and it was not
    /// told so either.
    fn has_just_entered(&self, waiter: Key, now: Moment) -> bool {
        let news = self.second_later.max(SECOND_LATER) * 2;
        self.inside_told
            .as_ref()
            .is_some_and(|(told, when)| now.since(*when) <= news && !told.contains(&waiter))
    }

    fn forget_waiters(&mut self, now: Moment) {
        let kept = self.remembered_for;
        self.waiters.retain(|(_, when)| now.since(*when) < kept);
    }
}

/// Notes that a waiter has said now that it waits. Returns whether it is new; nothing, and forgets it, if there is no room.
fn note(waiters: &mut Waiters, waiter: Waiter, now: Moment) -> Option<bool> {
    // A client waits once for each lock: what it has given up before must not use up a hint.
    waiters.retain(|(known, _)| known.address != waiter.address || known.key == waiter.key);
    if let Some(known) = waiters.iter_mut().find(|(known, _)| known.key == waiter.key) {
        *known = (waiter, now);
        return Some(false);
    }
    let has_room = waiters.len() < MOST_WAITERS;
    has_room.then(|| waiters.push((waiter, now)))?;
    Some(true)
}

#[cfg(test)]
mod tests;
