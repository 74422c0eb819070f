//! The holders and waiters before a waiter, for the error of a wait that is over.

use std::convert::Infallible;
use std::fmt;
use std::future::pending;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{Keeper, caught};
use crate::engine::{Holder, Inspection};
use crate::foreign::shielded;
use crate::key::Key;

/// The number of waiters of a client that may ask the store at once which holders and waiters are before them: where thousands give up
/// together, the store that they wait for must not be asked by all of them.
pub(super) const LOOKS: usize = 4;
/// The store is asked when this part of the wait is left, and not more than [`LONGEST`]: so the error comes when the wait is over, and
/// not later.
const PART: u32 = 10;
/// A look that is earlier than this may have nothing to do with the end of the wait.
const LONGEST: Duration = Duration::from_secs(2);
/// The last second of the year 9999. A store may show a later time, which no clock does.
const LAST: u64 = 253_402_300_799;

/// The holders, and the number of waiters, before a waiter; see the [module](self).
#[derive(Debug)]
pub(crate) struct Before {
    holders: Vec<Holder>,
    waiters: usize,
}

impl Keeper {
    /// Notes which holders and waiters are before this waiter, shortly before its wait is over. Never ends.
    pub(super) async fn look_before(
        &self,
        key: &Key,
        number: u64,
        wait: Option<Duration>,
        before: Option<&OnceLock<Before>>,
    ) -> Infallible {
        if let (Some(wait), Some(before)) = (wait, before) {
            self.environment.sleep(wait - (wait / PART).min(LONGEST)).await;
            // The engine's own view, without the waiters of this process: thousands of them may look one after the other.
            if let Ok(_permit) = self.looks.try_acquire()
                && let Ok(seen) = caught(shielded(self.engine.inspect(key))).await
                && let Some(seen) = self.before(key, number, seen)
            {
                drop(before.set(seen));
            }
        }
        pending().await
    }

    fn before(&self, key: &Key, number: u64, seen: Inspection) -> Option<Before> {
        let shard = self.shard(key).lock();
        let entry = shard.get(key)?;
        let place = entry.queue.iter().position(|waiter| waiter.number == number)?;
        // All waiters of this client stand together, where the store shows its one contender.
        let own = entry.shown_as();
        let elsewhere = seen.queue.iter().take_while(|waiter| Some(waiter.id) != own).count();
        Some(Before { holders: seen.holders, waiters: elsewhere + place })
    }
}

impl fmt::Display for Before {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.holders[..] {
            [] => f.write_str("it had no holder shortly before")?,
            [first, others @ ..] => {
                let Holder { client, owner, mode, since, .. } = first;
                write!(
                    f,
                    "client {client:?} held it to {mode} (owner {owner}, there since {})",
                    Time(*since)
                )?;
                if !others.is_empty() {
                    write!(f, " and {} more", others.len())?;
                }
            }
        }
        write!(f, ", {} waited before the caller", self.waiters)
    }
}

/// A time to the second, as a log shows it.
struct Time(SystemTime);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs().min(LAST);
        humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(seconds)).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_no_clock_shows_is_a_time_all_the_same() {
        let far = UNIX_EPOCH + Duration::from_micros(i64::MAX as u64);
        assert_eq!(Time(far).to_string(), "9999-12-31T23:59:59Z");
        assert_eq!(Time(UNIX_EPOCH - Duration::from_secs(5)).to_string(), "1970-01-01T00:00:00Z");
    }
}
