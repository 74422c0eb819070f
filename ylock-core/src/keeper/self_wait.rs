//! The warning to a caller that waits for a lock that it holds itself, under another owner.

use std::convert::Infallible;
use std::future::pending;
use std::panic::Location;
use std::thread::ThreadId;
use std::time::Duration;

use super::Keeper;
use super::entry::Entry;
use super::holder::Holder;
use crate::foreign::tell;
use crate::key::Key;
use crate::owner::Owner;

/// The time for which a caller waits before it is warned: a guard that another branch of the task is about to give back, or that was
/// passed on, is no deadlock.
const PATIENCE: Duration = Duration::from_secs(1);

/// The place in the program where a lock is acquired.
pub(crate) type Site = &'static Location<'static>;

/// The task or thread that called, as far as that can be told, and the place of the call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caller {
    thread: Thread,
    site: Site,
}

/// The task that called; outside of a task, as in the body of `main` or in `block_on`, the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Thread {
    Task(tokio::task::Id),
    System(ThreadId),
}

impl Caller {
    pub(super) fn current(site: Site) -> Self {
        let system = || Thread::System(std::thread::current().id());
        Self { thread: tokio::task::try_id().map_or_else(system, Thread::Task), site }
    }

    pub(super) fn site(self) -> Site {
        self.site
    }
}

impl Entry {
    /// Returns whether this caller has acquired it already.
    pub(super) fn is_held_by(&self, caller: Caller) -> bool {
        self.holders.iter().any(|holder| holder.caller.thread == caller.thread)
    }

    /// Returns the holder that a waiter waits for and that its own caller is.
    fn self_wait(&self, number: u64) -> Option<SelfWait> {
        let waiter = self.queue.iter().find(|waiter| waiter.number == number)?;
        let own = |holder: &&Holder| holder.caller.thread == waiter.caller.thread;
        let holder = self.holders.iter().find(own)?;
        Some(SelfWait {
            holder: (holder.hold.owner, holder.caller.site),
            again: holder.again,
            waiter: (waiter.owner, waiter.caller.site),
        })
    }
}

/// A caller that holds and waits, each under an owner and with its call.
struct SelfWait {
    holder: (Owner, Site),
    /// The last place where the owner entered again: the first guard may have been given back since.
    again: Option<Site>,
    waiter: (Owner, Site),
}

impl SelfWait {
    fn warn(&self, key: &Key) {
        let Self { holder, again, waiter } = self;
        tell!(
            warn, ?key, holder = %holder.0, acquired_at = %holder.1, again_at = again.map(tracing::field::display), waiter = %waiter.0, waits_at = %waiter.1,
            "a task waits for a lock that it has acquired itself, under another owner: unless the guard is with another task, or another branch \
             of this one gives it back, it waits until its wait is over, or for ever. Give the guard back first, or acquire both in the scope of \
             one owner"
        );
    }
}

impl Keeper {
    /// Warns, once, when the wait has lasted for long and the caller still holds what it waits for. Never ends.
    pub(super) async fn warn_of_self_wait(&self, key: &Key, number: u64, own: bool) -> Infallible {
        // Only for a caller that held it from the beginning: others need no timer.
        if own {
            self.environment.sleep(PATIENCE).await;
            let found = self.shard(key).lock().get(key).and_then(|entry| entry.self_wait(number));
            // Not while the shard is locked: a subscriber may do anything.
            if let Some(found) = found {
                found.warn(key);
            }
        }
        pending().await
    }
}
