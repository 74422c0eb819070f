//! One run of the closure of a set that grows: what it holds, and what it has asked for.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::acquire::acquire_or_time_out as acquire_set;
use super::guards::Guards;
use super::leases::{Leases, lost_one};
use super::two_phase_locking::TwoPhaseLocking;
use super::wanted::{MAX_MEMBERS, Member};
use crate::acquire::{acquire_or_time_out, acquire_within, owner_of};
use crate::bell::Bell;
use crate::deadline::AT_ONCE;
use crate::error::{Error, ErrorKind, Result};
use crate::guard::Guard;
use crate::keeper::Site;
use crate::key::Key;
use crate::lease::Lease;
use crate::mode::Mode;
use crate::terms::Terms;

/// The keys that were asked for in all attempts until now, each in the strongest mode.
pub(super) type Learnt = BTreeMap<Key, Mode>;

/// One run of the closure.
pub(super) struct Attempt {
    /// With an owner.
    terms: Terms,
    /// One lock is taken at a time: of two waits at once the later key could be granted while the earlier one is still waited for.
    turn: tokio::sync::Mutex<()>,
    pub(super) state: Mutex<State>,
    /// Rung when there is one more lock to look after.
    grown: Bell,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) held: BTreeMap<Key, Guard>,
    learnt: Learnt,
    /// The closure must run again, whatever it returns: what it was told is here and not only in an error, which it may drop.
    pub(super) gives_way: bool,
    /// The closure has ended: what is granted from now on must not stay.
    over: bool,
}

/// What is to be done for a lock that the closure asks for.
enum Next {
    Held(Lease),
    GivesWay,
    Wait,
    Try,
}

/// An attempt that goes on. With it the attempt ends, also if the caller stops waiting: a handle that lives on keeps no lock.
pub(super) struct Running(pub(super) Arc<Attempt>);

impl Running {
    /// Begins with all locks that earlier attempts have asked for, taken in order.
    pub(super) async fn begin(terms: &Terms, learnt: &Learnt, at: Site) -> Result<Self> {
        let members: Vec<_> =
            learnt.iter().map(|(key, mode)| Member { key: key.clone(), mode: *mode }).collect();
        let guards = acquire_set(terms, &members, at).await?;
        let held = guards.into_iter().map(|guard| (guard.key().clone(), guard)).collect();
        let state = State { held, learnt: learnt.clone(), ..State::default() };
        Ok(Self(Arc::new(Attempt {
            terms: terms.clone(),
            turn: tokio::sync::Mutex::default(),
            state: Mutex::new(state),
            grown: Bell::default(),
        })))
    }

    /// Runs the closure, or returns the error of the first lock that is lost meanwhile.
    pub(super) async fn run<F: Future>(
        &self,
        work: &mut impl FnMut(TwoPhaseLocking) -> F,
    ) -> Result<F::Output> {
        let handle = TwoPhaseLocking(Arc::clone(&self.0));
        tokio::select! {
            // As in `run` of a set: work that is ready in the same moment must not run on.
            biased;
            lost = self.0.lost() => Err(lost),
            output = owner_of(&self.0.terms).scope(async { work(handle).await }) => Ok(output),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.end());
    }
}

impl Attempt {
    pub(super) async fn take(&self, key: Result<Key>, mode: Mode, at: Site) -> Result<Lease> {
        let key = key?;
        let _turn = self.turn.lock().await;
        let guard = match self.next(&key, mode)? {
            Next::Held(lease) => return Ok(lease),
            Next::GivesWay => return Err(gives_way(&key)),
            Next::Wait => acquire_or_time_out(&self.terms, key.clone(), mode, at).await?,
            Next::Try => match acquire_within(&self.terms, key.clone(), mode, AT_ONCE, None, at).await {
                Ok(Some(guard)) => guard,
                Ok(None) => return Err(self.give_way(&key)),
                // The next attempt waits for it, and a wait bears that the store is silent for a while.
                Err(error) if error.kind().is_silence() => return Err(self.give_way(&key)),
                Err(error) => return Err(error),
            },
        };
        self.keep(key, guard)
    }

    /// Decides what is to be done for this lock, and remembers that it was asked for.
    fn next(&self, key: &Key, mode: Mode) -> Result<Next> {
        let mut state = self.state.lock();
        if state.over {
            return Err(over(key));
        }
        state.learn(key, mode)?;
        let held = state.held.get(key);
        if let Some(guard) = held.filter(|guard| mode == Mode::Read || guard.mode() == Mode::Write) {
            return Ok(Next::Held(guard.lease()));
        }
        // A reader that wants to write must not wait for the other readers, which may want the same: the next attempt writes from the beginning.
        if state.gives_way || held.is_some() {
            state.gives_way = true;
            return Ok(Next::GivesWay);
        }
        let last = self.terms.handle.keeper.last_of_sets(owner_of(&self.terms));
        Ok(if last.is_none_or(|last| last < *key) { Next::Wait } else { Next::Try })
    }

    fn give_way(&self, key: &Key) -> Error {
        self.state.lock().gives_way = true;
        gives_way(key)
    }

    fn keep(&self, key: Key, guard: Guard) -> Result<Lease> {
        let set = self.terms.handle.keeper.hold_set(guard.owner(), key.clone());
        let (lease, guard) = (guard.lease(), guard.of_set(&set));
        let mut state = self.state.lock();
        if state.over {
            // Before the guard, whose drop may run anything.
            drop(state);
            return Err(over(&key));
        }
        state.held.insert(key, guard);
        drop(state);
        self.grown.ring();
        Ok(lease)
    }

    /// Waits until one of the locks is lost, also one that is still to come, and returns the error.
    async fn lost(&self) -> Error {
        loop {
            let grown = self.grown.listen();
            let leases = Leases::new(self.state.lock().held.values().map(Guard::lease));
            tokio::select! {
                biased;
                (key, _) = leases.lost() => return lost_one(&leases, &key),
                () = grown => {}
            }
        }
    }

    /// Ends the attempt, and returns what it held.
    pub(super) fn end(&self) -> Guards {
        let mut state = self.state.lock();
        state.over = true;
        let held = std::mem::take(&mut state.held);
        drop(state);
        held.into_values().collect()
    }

    /// Returns what the next attempt begins with, if there is to be one.
    pub(super) fn learnt_to_begin_anew(&self) -> Option<Learnt> {
        let mut state = self.state.lock();
        state.gives_way.then(|| std::mem::take(&mut state.learnt))
    }
}

impl State {
    fn learn(&mut self, key: &Key, mode: Mode) -> Result<()> {
        if self.learnt.len() >= MAX_MEMBERS && !self.learnt.contains_key(key) {
            let message = format!("a set that grows has {MAX_MEMBERS} locks; that is the limit");
            return Err(Error::new(ErrorKind::Invalid, message).with_key(key));
        }
        let learnt = self.learnt.entry(key.clone()).or_insert(mode);
        if mode == Mode::Write {
            *learnt = mode;
        }
        Ok(())
    }
}

fn gives_way(key: &Key) -> Error {
    let message = "the lock is not free, and waiting for it might never end: pass this error on, and the closure runs again, with all locks \
                   that it has asked for";
    Error::new(ErrorKind::GivesWay, message).with_key(key)
}

fn over(key: &Key) -> Error {
    Error::new(ErrorKind::Invalid, "the closure for which this lock was to be taken has ended").with_key(key)
}
