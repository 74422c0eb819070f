//! One task of a process: it acquires, works, and lets go, in every way there is.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::{Either, select};
use ylock_core::environment::Environment;
use ylock_core::{ErrorKind, Guard, Lock, Mode, Owner, Unlocked, Ylock};

use super::Process;
use super::built::Built;
use super::errand::{Errand, options};
use super::inside::Inside;
use super::sets::Sets;
use crate::chance::Chance;
use crate::client::Busy;

/// One task of a process; see the [module](self).
pub(super) struct Visitor {
    pub(super) process: Arc<Process>,
    pub(super) owner: Owner,
    pub(super) chance: Chance,
}

/// A guard with what the oracle knows of it: declared first, so that it leaves before the lock is given back.
struct Held {
    inside: Inside,
    guard: Guard,
}

impl Visitor {
    /// Goes in and out until the run is over.
    pub(super) async fn live(mut self, _busy: Busy) {
        while !self.process.shared.is_over.load(Ordering::Relaxed) {
            self.rest(Duration::from_secs(2)).await;
            let Some(client) = self.process.client() else { return };
            if self.process.shared.sets != Sets::None && self.chance.happens(0.5) {
                self.visit_set(&client).await;
                continue;
            }
            if self.process.shared.built != Built::None && self.chance.happens(0.5) {
                self.visit_built(&client).await;
                continue;
            }
            match self.chance.below(100) {
                0..=3 => drop(client.revoke("group", self.name()).await),
                4..=5 => drop(client.inspect("group", self.name()).await),
                6 => self.process.reconnect().await,
                7..=14 => self.run(&client).await,
                _ => self.visit(&client).await,
            }
        }
    }

    async fn rest(&mut self, most: Duration) {
        let time = self.chance.between(Duration::ZERO, most);
        self.process.clocks.sleep(time).await;
    }

    pub(super) fn name(&mut self) -> String {
        let keys = &self.process.shared.keys;
        keys[self.chance.below(keys.len() as u64) as usize].name().to_owned()
    }

    /// Returns how long to stay: mostly shorter than a renewal takes to come, sometimes several leases.
    pub(super) fn stay(&mut self) -> Duration {
        let lease = self.process.shared.lease;
        let most = if self.chance.happens(0.15) { lease * 2 } else { lease / 4 };
        self.chance.between(Duration::ZERO, most)
    }

    /// Returns a lock, and whether an owner is named for it.
    fn lock(&mut self, client: &Ylock) -> (Lock, bool) {
        let lease = self.process.shared.any_lease(&mut self.chance);
        let options = options(&mut self.chance, lease);
        let lock = client.lock("group", self.name()).with_options(options);
        match self.chance.below(10) {
            0 => (lock, false),
            1 | 2 => (lock.owned_by(&self.process.owner), true),
            _ => (lock.owned_by(&self.owner), true),
        }
    }

    /// Runs work that is stopped when the lock is lost.
    async fn run(&mut self, client: &Ylock) {
        let (lock, _) = self.lock(client);
        let (process, time) = (Arc::clone(&self.process), self.stay());
        let is_writer = self.chance.happens(0.7);
        let work = |lease: ylock_core::Lease| async move {
            if let Some(mut inside) = Inside::enter(&process, &lease) {
                inside.work(time).await;
                inside.write();
            }
        };
        let acquiring = if is_writer { lock.write() } else { lock.read() };
        let result = acquiring.run(work).await;
        if let Err(error) = result {
            self.process.excuse(&error);
        }
    }

    async fn visit(&mut self, client: &Ylock) {
        let (lock, is_named) = self.lock(client);
        let errand = Errand::any(&mut self.chance, self.process.shared.lease);
        let guard = match errand.acquire(&lock, &self.process.clocks).await {
            Ok(Some(guard)) => guard,
            Ok(None) => return,
            Err(error) => return self.process.excuse(&error),
        };
        let Some(inside) = Inside::enter(&self.process, &guard) else { return };
        let mut held = Held { inside, guard };
        if is_named && self.chance.happens(0.3) {
            match self.reenter(&lock, held).await {
                Some(outer) => held = outer,
                None => return,
            }
        }
        let time = self.stay();
        held.inside.work(time).await;
        held.inside.write();
        if held.guard.mode() == Mode::Write && self.chance.happens(0.2) {
            match self.downgrade(held).await {
                Some(reader) => held = reader,
                None => return,
            }
        }
        self.let_go(held).await;
    }

    /// Acquires once more for the same owner, and gives back one of the two guards. Returns the other one.
    async fn reenter(&mut self, lock: &Lock, outer: Held) -> Option<Held> {
        let errand = Errand::any(&mut self.chance, self.process.shared.lease);
        let answer = errand.acquire(lock, &self.process.clocks).await;
        let deadlocks = errand.mode == Mode::Write && outer.guard.mode() == Mode::Read;
        let inner = match answer {
            Ok(Some(guard)) => guard,
            Err(error) if error.kind() == ErrorKind::WouldDeadlock && deadlocks => return Some(outer),
            other => {
                // What has not ended until now was held all the time.
                if outer.guard.is_valid() {
                    self.process.shared.oracle.complain(format!("no reentry, but {other:?}"));
                }
                return Some(outer);
            }
        };
        if outer.guard.is_valid() && inner.token() != outer.guard.token() {
            self.process.shared.oracle.complain("an owner has two tokens at once".to_owned());
        }
        let Some(inside) = Inside::enter(&self.process, &inner) else { return Some(outer) };
        let inner = Held { inside, guard: inner };
        self.rest(Duration::from_secs(1)).await;
        if self.chance.happens(0.5) {
            self.let_go(inner).await;
            return Some(outer);
        }
        self.let_go(outer).await;
        Some(inner)
    }

    /// Goes on as a reader, if it does not change its mind, and is not too late.
    async fn downgrade(&mut self, mut held: Held) -> Option<Held> {
        // Before the store hears of it: from then on it is unknown whether readers may come in.
        held.inside.downgrade();
        let patience =
            if self.chance.happens(0.2) { Duration::from_millis(15) } else { Duration::from_secs(60) };
        let Held { inside, guard } = held;
        let downgrading = Box::pin(guard.downgrade());
        let answer = match select(downgrading, self.process.clocks.sleep(patience)).await {
            Either::Left((answer, _)) => answer,
            Either::Right((_, dropped)) => {
                // In this order, as everywhere.
                drop(inside);
                drop(dropped);
                return None;
            }
        };
        match answer {
            Ok(guard) => {
                let mut held = Held { inside, guard };
                let time = self.stay();
                held.inside.work(time).await;
                held.inside.write();
                Some(held)
            }
            Err(error) => {
                self.process.excuse(&error);
                None
            }
        }
    }

    async fn let_go(&mut self, held: Held) {
        match self.chance.below(8) {
            0..=3 => self.unlock(held).await,
            4..=5 => drop(held),
            6 => {
                let Held { inside, guard } = held;
                drop(inside);
                // Not waited for.
                drop(guard.unlock());
            }
            _ => self.forget_in_a_task(held),
        }
    }

    async fn unlock(&self, held: Held) {
        let Held { inside, guard } = held;
        let was_valid = guard.is_valid();
        drop(inside);
        match guard.unlock().await {
            Ok(Unlocked::Released) if !was_valid => {
                self.process
                    .shared
                    .oracle
                    .complain("a lock that was lost is said to be held to the end".to_owned());
            }
            Ok(_) => {}
            Err(error) => self.process.excuse(&error),
        }
    }

    /// Leaves the guard to another task, which only sleeps for a while.
    fn forget_in_a_task(&mut self, held: Held) {
        let time = self.chance.between(Duration::ZERO, self.process.shared.lease * 2);
        let (clocks, busy) = (Arc::clone(&self.process.clocks), Busy::new(&self.process.shared));
        self.process.clocks.spawn_of_program(Box::pin(async move {
            clocks.sleep(time).await;
            drop((held, busy));
        }));
    }
}
