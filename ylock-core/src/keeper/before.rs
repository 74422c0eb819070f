//! Who is before a waiter: for the error of a wait that is over.

use std::convert::Infallible;
use std::fmt;
use std::future::pending;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use super::view::Local;
use super::{Keeper, lock};
use crate::engine::{Holder, Inspection};
use crate::key::Key;

/// How many waiters of a client may ask the store at once who is before them: where thousands give up together, the store that they wait
/// for must not be asked by all of them.
pub(super) const LOOKS: usize = 4;
/// This part of the wait before its end the store is asked: so the error comes when the wait is over, and not later.
const PART: u32 = 10;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Before {
    holders: Vec<Holder>,
    waiters: usize,
}

impl Keeper {
    /// Notes who is before this waiter when a tenth of its wait is left. Never ends.
    pub(super) async fn look_before(
        self: Arc<Self>,
        key: Key,
        number: u64,
        wait: Duration,
        before: Option<&OnceLock<Before>>,
    ) -> Infallible {
        if let Some(before) = before {
            self.environment.sleep(wait - wait / PART).await;
            if let Ok(_permit) = self.looks.try_acquire()
                && let Ok(seen) = self.inspect(&key).await
                && let Some(seen) = self.before(&key, number, seen)
            {
                drop(before.set(seen));
            }
        }
        pending().await
    }

    fn before(&self, key: &Key, number: u64, seen: Inspection) -> Option<Before> {
        let shard = lock(self.shard(key));
        let entry = shard.get(key)?;
        let place = entry.queue.iter().position(|waiter| waiter.number == number)?;
        let shown_as = Local::of(entry, self.name.get()).shown_as();
        // All waiters of this client stand together, where the store shows its one contender.
        let first = seen.queue.iter().position(|waiter| Some(waiter.id) == shown_as);
        Some(Before { holders: seen.holders, waiters: first.unwrap_or(seen.queue.len()) + place })
    }
}

impl fmt::Display for Before {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.holders[..] {
            [] => f.write_str("it had no holder shortly before")?,
            [first, others @ ..] => {
                let Holder { client, owner, mode, since, .. } = first;
                write!(f, "client {client:?} held it to {mode} since {} (owner {owner})", Time(*since))?;
                if !others.is_empty() {
                    write!(f, " and {} more", others.len())?;
                }
            }
        }
        write!(f, ", {} waited before the caller", self.waiters)
    }
}

/// To the second, as a log shows it.
struct Time(SystemTime);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_rfc3339_seconds(self.0).fmt(f)
    }
}
