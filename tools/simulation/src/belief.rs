//! The belief by which a holder says that it still holds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ylock_core::engine::Grant;
use ylock_core::environment::Moment;
use ylock_core::{Lease, Options, PermitLease};

/// A holder's belief that it still holds; see the [module](self).
#[derive(Debug)]
pub enum Belief {
    /// That of a client above an engine: it counts by itself.
    Until(Moment),
    /// That of a task above the keeper: its guard says so.
    Says(Lease),
    /// That of a task with a permit.
    Permits(PermitLease),
    /// That of a task which goes by what it was shown.
    Seen(Arc<AtomicBool>),
}

impl Belief {
    /// Returns the validity of a grant that counts from `sent`, as the contract of an engine has it.
    pub fn of(grant: &Grant, sent: Moment) -> Self {
        let margin = Options::default().with_lease(grant.lease).margin();
        Self::Until(sent.plus(grant.lease.saturating_sub(margin)))
    }

    /// Returns whether the holder still holds.
    pub(crate) fn is_valid(&self, now: Moment) -> bool {
        match self {
            Self::Until(moment) => now < *moment,
            Self::Says(lease) => lease.is_valid(),
            Self::Permits(permit) => permit.is_valid(),
            Self::Seen(holds) => holds.load(Ordering::Relaxed),
        }
    }

    /// Returns whether the holder has been told that it does not hold any more. A holder that counts by itself knows.
    pub(crate) fn is_told(&self) -> bool {
        match self {
            Self::Until(_) => true,
            Self::Says(lease) => lease.loss().is_some(),
            Self::Permits(permit) => permit.loss().is_some(),
            Self::Seen(holds) => !holds.load(Ordering::Relaxed),
        }
    }

    /// Returns what the holder believes after a renewal: one that was sent earlier takes nothing away.
    pub(crate) fn or_later(self, renewed: Self) -> Self {
        match (&self, &renewed) {
            (Self::Until(before), Self::Until(after)) if before > after => self,
            _ => renewed,
        }
    }
}
