//! The waiters of this client: whom each waits for, and how it is woken.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;
use smallvec::SmallVec;
use tokio::sync::Notify;
use ylock_core::engine::AcquisitionId;

use crate::client_id::ClientId;
use crate::message::{LetIn, Message};

/// The clients that a waiter waits for.
pub(crate) type InTheWay = SmallVec<[ClientId; 2]>;

/// Every call of `acquire` that waits.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    state: Mutex<State>,
    /// Notified when a client is to be watched that was not.
    pub(crate) peers_changed: Arc<Notify>,
}

#[derive(Debug, Default)]
struct State {
    waiters: HashMap<AcquisitionId, Waiter>,
    /// How many waiters wait for each of these clients.
    peers: HashMap<ClientId, usize>,
    /// Clients that have ended, as the background task has found out lately: for waiters that come to wait for one of them after it was told.
    ended: HashSet<ClientId>,
}

#[derive(Debug, Default)]
struct Waiter {
    wake: Arc<Notify>,
    in_the_way: InTheWay,
    /// Those of them that have ended since it last asked.
    dead: InTheWay,
    /// How it was let in, as another client has told.
    let_in: Option<LetIn>,
}

/// One call that waits; no longer when this is dropped.
#[derive(Debug)]
pub(crate) struct Waiting<'a> {
    waiters: &'a Waiters,
    id: AcquisitionId,
    /// Notified when the waiter is to look. It keeps one notice that came before the waiter listens.
    pub(crate) wake: Arc<Notify>,
}

impl Waiters {
    /// Begins to wait: from now on notices are kept.
    pub(crate) fn begin(&self, id: AcquisitionId) -> Waiting<'_> {
        let wake = Arc::clone(&self.state.lock().waiters.entry(id).or_default().wake);
        Waiting { waiters: self, id, wake }
    }

    pub(crate) fn len(&self) -> usize {
        self.state.lock().waiters.len()
    }

    /// Wakes the waiter that a message is for, if it waits here.
    pub(crate) fn hear(&self, message: Message) {
        let mut state = self.state.lock();
        let wake = state.waiters.get_mut(&message.waiter).map(|waiter| {
            waiter.let_in = message.let_in.or(waiter.let_in);
            Arc::clone(&waiter.wake)
        });
        drop(state);
        // Not under the mutex: a waker is its owner's code.
        if let Some(wake) = wake {
            wake.notify_one();
        }
    }

    pub(crate) fn wake_all(&self) {
        self.wake_those(|_| true);
    }

    /// Wakes those that wait for a client, which has ended.
    pub(crate) fn ended(&self, peer: ClientId) {
        self.state.lock().ended.insert(peer);
        self.wake_those(|waiter| {
            let waits = waiter.in_the_way.contains(&peer);
            if waits {
                waiter.dead.push(peer);
            }
            waits
        });
    }

    fn wake_those(&self, mut which: impl FnMut(&mut Waiter) -> bool) {
        let mut state = self.state.lock();
        let mut woken = Vec::new();
        for waiter in state.waiters.values_mut() {
            if which(waiter) {
                woken.push(Arc::clone(&waiter.wake));
            }
        }
        drop(state);
        woken.iter().for_each(|wake| wake.notify_one());
    }

    /// Forgets which clients have ended: their pipes will be gone soon, and what they have left, too.
    pub(crate) fn forget_ended(&self) {
        self.state.lock().ended.clear();
    }

    /// Returns the clients that waiters of this client wait for.
    pub(crate) fn peers(&self) -> Vec<ClientId> {
        self.state.lock().peers.keys().copied().collect()
    }
}

impl Waiting<'_> {
    /// Returns how this one was let in, if it was told so.
    pub(crate) fn take_let_in(&self) -> Option<LetIn> {
        self.waiters.state.lock().waiters.get_mut(&self.id).and_then(|waiter| waiter.let_in.take())
    }

    /// Returns those in the way that have ended since this was last asked.
    pub(crate) fn take_dead(&self) -> InTheWay {
        let mut state = self.waiters.state.lock();
        state.waiters.get_mut(&self.id).map(|waiter| std::mem::take(&mut waiter.dead)).unwrap_or_default()
    }

    /// Says whom this one waits for, from now on.
    pub(crate) fn waits_for(&self, in_the_way: InTheWay) {
        let mut state = self.waiters.state.lock();
        let State { waiters, peers, ended } = &mut *state;
        let Some(waiter) = waiters.get_mut(&self.id) else { return };
        if waiter.in_the_way == in_the_way {
            return;
        }
        let is_new = in_the_way.iter().any(|peer| !peers.contains_key(peer));
        in_the_way.iter().for_each(|peer| *peers.entry(*peer).or_default() += 1);
        waiter.dead.extend(in_the_way.iter().copied().filter(|peer| ended.contains(peer)));
        let wake = (!waiter.dead.is_empty()).then(|| Arc::clone(&waiter.wake));
        leave(peers, &std::mem::replace(&mut waiter.in_the_way, in_the_way));
        drop(state);
        if let Some(wake) = wake {
            wake.notify_one();
        }
        if is_new {
            self.waiters.peers_changed.notify_one();
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut state = self.waiters.state.lock();
        if let Some(waiter) = state.waiters.remove(&self.id) {
            leave(&mut state.peers, &waiter.in_the_way);
        }
    }
}

fn leave(peers: &mut HashMap<ClientId, usize>, in_the_way: &[ClientId]) {
    for peer in in_the_way {
        if let Some(count) = peers.get_mut(peer) {
            *count -= 1;
            if *count == 0 {
                peers.remove(peer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::str::FromStr;

    use futures_util::FutureExt;
    use ylock_core::StoreToken;
    use ylock_core::environment::Moment;

    use super::*;

    fn id(number: u128) -> AcquisitionId {
        AcquisitionId::from_u128(number)
    }

    fn peer(name: &str) -> ClientId {
        ClientId::from_str(name).unwrap()
    }

    fn those(peers: &[&str]) -> InTheWay {
        peers.iter().map(|name| peer(name)).collect()
    }

    fn is_woken(waiting: &Waiting<'_>) -> bool {
        waiting.wake.notified().now_or_never().is_some()
    }

    #[test]
    fn a_client_is_watched_for_as_long_as_a_waiter_waits_for_it() {
        let waiters = Waiters::default();
        let watched = || {
            let mut peers: Vec<_> = waiters.peers().iter().map(ToString::to_string).collect();
            peers.sort();
            peers.iter().map(|name| name.trim_start_matches('0').to_owned()).collect::<String>()
        };
        let is_told = || waiters.peers_changed.notified().now_or_never().is_some();
        let (one, other) = (waiters.begin(id(1)), waiters.begin(id(2)));
        assert!(waiters.len() == 2 && !is_told());
        one.waits_for(those(&["a"]));
        assert!(watched() == "a" && is_told());
        other.waits_for(those(&["a", "b"]));
        assert!(watched() == "ab" && is_told());
        one.waits_for(those(&["b"]));
        assert!(watched() == "ab" && !is_told(), "both are watched already");
        drop(other);
        assert_eq!((watched().as_str(), waiters.len()), ("b", 1));
        drop(one);
        assert_eq!((watched().as_str(), waiters.len()), ("", 0));
    }

    #[test]
    fn those_that_wait_for_a_client_that_ends_are_woken_also_those_that_come_later() {
        let waiters = Waiters::default();
        let (one, other) = (waiters.begin(id(1)), waiters.begin(id(2)));
        one.waits_for(those(&["a"]));
        other.waits_for(those(&["b"]));
        assert!(!is_woken(&one) && !is_woken(&other));
        waiters.ended(peer("a"));
        assert!(is_woken(&one) && !is_woken(&other));
        assert_eq!((one.take_dead(), one.take_dead()), (those(&["a"]), those(&[])));
        other.waits_for(those(&["a"]));
        assert!(is_woken(&other));
        assert_eq!(other.take_dead(), those(&["a"]));
        waiters.forget_ended();
        other.waits_for(those(&["b"]));
        other.waits_for(those(&["a"]));
        assert!(!is_woken(&other) && other.take_dead().is_empty());
    }

    #[test]
    fn a_message_wakes_its_waiter_and_says_once_that_it_is_inside() {
        let waiters = Waiters::default();
        let (one, other) = (waiters.begin(id(1)), waiters.begin(id(2)));
        let let_in = Some(LetIn { token: StoreToken::LOWEST, sent: Moment::ZERO, contended: false });
        waiters.hear(Message { waiter: id(1), let_in });
        waiters.hear(Message { waiter: id(1), let_in: None });
        waiters.hear(Message { waiter: id(3), let_in });
        assert!(is_woken(&one) && !is_woken(&other));
        assert_eq!((one.take_let_in(), one.take_let_in(), other.take_let_in()), (let_in, None, None));
        waiters.wake_all();
        assert!(is_woken(&one) && is_woken(&other));
    }
}
