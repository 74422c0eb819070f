//! The state that all own rows of one client share.

use std::sync::Arc;
use std::time::Duration;

use ylock_core::engine::Ticket;
use ylock_core::environment::{Environment, Moment};
use ylock_core::{Error, ErrorKind, Result, StoreToken};

use crate::algorithm::clock::{GlobalTime, HybridClock, Stamps};
use crate::algorithm::runs::RunCell;
use crate::algorithm::store::{Slot, Store};
use crate::hints::Exchange;
use crate::options::Expiry;

/// The skew of clocks that idle rows outlive where rows are observed.
const IDLE_SKEW: Duration = Duration::from_secs(2);

/// The state that all own rows of one client share.
#[derive(Debug)]
pub(crate) struct Client {
    /// The client's row in every partition.
    pub(crate) slot: Slot,
    /// The store that keeps the rows.
    pub(crate) store: Arc<dyn Store>,
    /// The source of time, randomness and tasks.
    pub(crate) environment: Arc<dyn Environment>,
    /// The source of tokens, and of tickets unless there is a global time.
    pub(crate) clock: HybridClock,
    /// The thesis's time service, if the options want tickets from it.
    pub(crate) global_time: Option<Arc<GlobalTime>>,
    /// The source of write timestamps.
    pub(crate) stamps: Stamps,
    /// The rule by which the rows of dead clients go.
    pub(crate) expiry: Expiry,
    /// The most by which the clocks of two servers may differ: rows live longer by this.
    pub(crate) max_clock_skew: Duration,
    /// The time for which a token outlives its grant, in seconds.
    pub(crate) token_ttl: u32,
    /// The way of hints from and to other clients; nothing where it cannot be told.
    pub(crate) hints: Option<Arc<Exchange>>,
    /// Where the last runs of jobs are kept; nothing over a store that keeps none.
    pub(crate) runs: Option<Arc<dyn RunCell>>,
}

impl Client {
    /// Returns the TTL of a row with this lease, in whole seconds. Servers count whole seconds, so up to one second is lost, and their
    /// clocks differ.
    pub(crate) fn row_ttl(&self, lease: Duration) -> u32 {
        ttl(lease, self.max_clock_skew)
    }

    /// Returns the TTL of a row that takes no part. No client relies on it, so where rows are observed it need not outlive the skew of clocks:
    /// a name that many clients use once would be full of such rows. When it has gone, a replica that missed it may show what it superseded,
    /// which stands in the way until it is dead, too. Without observation that would stand there until its own TTL.
    pub(super) fn idle_ttl(&self, lease: Duration) -> u32 {
        match self.expiry {
            Expiry::Ttl => self.row_ttl(lease),
            Expiry::Observed => ttl(lease, self.max_clock_skew.min(IDLE_SKEW)),
        }
    }

    /// Returns a place in the queue: behind `largest`, if that is known and there is no global time.
    pub(crate) fn ticket_after(&self, largest: Option<Ticket>) -> Ticket {
        if let Some(time) = &self.global_time {
            // As in the thesis: two requests may get the same ticket, and then the slot decides.
            return Ticket::from_number(time.latest());
        }
        let tick = self.clock.tick(&*self.environment);
        Ticket::from_number(largest.map_or(tick, |largest| tick.max(largest.get().saturating_add(1))))
    }

    /// Returns whether one place is further behind another one than clocks may be apart.
    pub(super) fn is_far_ahead(&self, place: Ticket, of: Ticket) -> bool {
        self.global_time.is_none() && self.clock.is_far_ahead(place.get(), of.get())
    }

    /// Takes a token larger than `largest`.
    pub(super) fn token_after(&self, largest: Option<StoreToken>) -> Result<StoreToken> {
        let lead = largest.map_or(0, StoreToken::get).saturating_sub(self.wall());
        if Duration::from_micros(lead) > Duration::from_secs(u64::from(self.token_ttl)) / 2 {
            return Err(too_far_ahead(Duration::from_micros(lead)));
        }
        let tick = u64::try_from(self.clock.tick(&*self.environment)).unwrap_or(1);
        let next = largest.map_or(tick, |largest| tick.max(largest.get() + 1));
        StoreToken::new(next)
            .ok_or_else(|| Error::new(ErrorKind::Unexpected, "a token of this lock is the largest there is"))
    }

    fn wall(&self) -> u64 {
        u64::try_from(self.environment.wall_micros()).unwrap_or(0)
    }

    pub(crate) fn now(&self) -> Moment {
        self.environment.now()
    }
}

fn ttl(lease: Duration, skew: Duration) -> u32 {
    let exact = lease.as_secs_f64().ceil() + 1.0 + skew.as_secs_f64().ceil();
    exact as u32
}

/// Returns the error for a token that is too far ahead of this machine's clock.
///
/// A name whose tokens are forgotten starts anew from the clocks: a token that is still ahead of them then would be larger than the
/// tokens that follow it. Half of `token_ttl` is left to find that out.
fn too_far_ahead(lead: Duration) -> Error {
    let message = format!(
        "the last token of this lock is {lead:?} ahead of this machine's clock, more than half of token_ttl: either this \
         clock is slow, or another client's clock was fast when it took the token. Set the clocks right; or connect with a \
         longer token_ttl"
    );
    Error::new(ErrorKind::Unexpected, message)
}
