//! Looks whether the name that a caller uses as a lock is in use as a semaphore. Such a caller must not wait in silence for as long as permits are
//! held, nor read beside them.
//!
//! What this process holds it knows. The store is asked only where that can tell something: by the driver of callers that have waited for a moment, after
//! a try that was refused, and by a reader that was let in beside others. So a lock that is free costs nothing more, nor does a short wait.

use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::effects::Effects;
use super::entry::Entry;
use super::{Keeper, caught};
use crate::client_name::ClientName;
use crate::engine::{Patience, Request};
use crate::environment::Moment;
use crate::error::{Error, Result};
use crate::key::{BuildKeyHasher, Key};
use crate::permits;

/// How long a caller waits before its driver looks: most locks are handed over sooner.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
/// For how long a look that found a lock spares other calls of the client one.
const KNOWN_FOR: Duration = Duration::from_secs(1);
/// The number of such looks that are remembered at once.
const REMEMBERED: usize = 64;

/// The keys that were seen to be used as locks a moment ago, by their hashes. Of a fixed size: nothing is kept for an unused key. Two keys with one hash
/// would spare each other a look.
pub(super) struct KnownLocks(Mutex<[Option<(u64, Moment)>; REMEMBERED]>);

impl Default for KnownLocks {
    fn default() -> Self {
        Self(Mutex::new([None; REMEMBERED]))
    }
}

impl KnownLocks {
    fn note(&self, key: &Key, now: Moment) {
        let hash = hash(key);
        self.0.lock()[place(hash)] = Some((hash, now));
    }

    fn has(&self, key: &Key, now: Moment) -> bool {
        let hash = hash(key);
        self.0.lock()[place(hash)].is_some_and(|(known, since)| known == hash && now.since(since) < KNOWN_FOR)
    }
}

fn hash(key: &Key) -> u64 {
    BuildKeyHasher::default().hash_one(key)
}

fn place(hash: u64) -> usize {
    hash as usize % REMEMBERED
}

/// Returns for how long a caller waits before its driver looks. In the middle of a short wait, so that the answer comes before the wait is over.
pub(super) fn looks_after(limit: Option<Duration>) -> Duration {
    limit.map_or(FIRST_PAUSE, |limit| FIRST_PAUSE.min(limit / 2)).max(SHORTEST_PAUSE)
}

impl Keeper {
    /// Looks, and once more after twice as long, until the store has answered. Fails the waiters that came for a lock if the name is a semaphore's.
    pub(super) async fn look_for_permits(self: &Arc<Self>, key: &Key, mut pause: Duration) {
        while self.look(key).await.is_none_or(|found| found.is_err_and(|error| self.fail_locks(key, &error)))
        {
            self.environment.sleep(pause).await;
            pause *= 2;
        }
    }

    fn fail_locks(self: &Arc<Self>, key: &Key, error: &Error) -> bool {
        self.change(key, |entry, context, effects| {
            entry.fail_locks(error, effects);
            entry.advance(context, effects);
        });
        // Others may come for a lock while a semaphore's reader waits here.
        true
    }

    /// Fails if the name is in use as a semaphore. Asks the store, unless this client was shown a moment ago that it is a lock.
    pub(super) async fn must_be_lock(&self, key: &Key) -> Result<()> {
        if self.known_locks.has(key, self.environment.now()) {
            return Ok(());
        }
        // A store that is silent now has let the caller in, or refused it. That counts.
        self.look(key).await.unwrap_or(Ok(()))
    }

    /// Asks the store once. `None` if it was not asked, because other callers ask already, or has not answered.
    async fn look(&self, key: &Key) -> Option<Result<()>> {
        let _permit = self.looks.try_acquire().ok()?;
        // Before the answer: what it shows is not older.
        let now = self.environment.now();
        // That of the first holder is enough: this client's own grant, if it has one, came later.
        let seen = caught(self.engine.some_holders(key)).await.ok()?;
        Some(match permits::found(key, &seen) {
            Some(error) => Err(self.about(key, error)),
            None => {
                self.known_locks.note(key, now);
                Ok(())
            }
        })
    }
}

impl Entry {
    /// Returns the error for a caller that comes for a lock, if this client has it as a semaphore.
    pub(super) fn is_semaphore(&self, key: &Key, client: impl FnOnce() -> ClientName) -> Option<Error> {
        // A client reads its name for permits only, or not for any: one holder tells.
        let permits = permits::permits_of(self.holders.first()?.hold.owner)?;
        Some(permits::is_semaphore(key, &client(), permits))
    }

    /// Fails the waiters that came for a lock.
    fn fail_locks(&mut self, error: &Error, effects: &mut Effects) {
        for waiter in std::mem::take(&mut self.queue) {
            if waiter.as_lock {
                effects.fail(waiter, error.clone());
            } else {
                self.queue.push_back(waiter);
            }
        }
    }

    /// Returns for how long this request of the first waiter waits before a look, if it came for a lock and waits.
    pub(super) fn looks_after(&self, request: &Request) -> Option<Duration> {
        let waits = request.patience == Patience::Queue;
        self.queue.front().filter(|first| waits && first.as_lock).map(|first| first.looks_after)
    }
}
