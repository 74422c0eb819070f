//! One acquisition in a queue.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::client_name::ClientName;
use crate::engine::{AcquisitionId, Request, Ticket, Waiter};
use crate::environment::Moment;
use crate::mode::Mode;
use crate::options::Fairness;
use crate::owner::Owner;
use crate::token::StoreToken;

/// One acquisition that holds a key or waits for it.
#[derive(Clone, Debug)]
pub struct Contender<T> {
    pub(super) id: AcquisitionId,
    pub(super) mode: Mode,
    pub(super) owner: Owner,
    pub(super) client: ClientName,
    pub(super) ticket: Ticket,
    pub(super) fairness: Fairness,
    /// The time for which its grant lives without renewal.
    pub(super) lease: Duration,
    /// Microseconds of the wall clock: since when it waits, or holds.
    pub(super) since: i64,
    /// The moment at which it is gone unless it shows itself again.
    pub(super) expires: Moment,
    /// Its token, from the moment it holds.
    pub(super) token: Option<StoreToken>,
    /// True if the grant was revoked. Only a holder's is.
    pub(super) revoked: bool,
    /// The grant of the same client that it stands behind, announced and not asking by itself. It goes with that grant.
    pub(super) behind: Option<AcquisitionId>,
    /// What the engine keeps with it.
    pub kept: T,
}

impl<T> Contender<T> {
    /// Returns its acquisition.
    pub fn id(&self) -> AcquisitionId {
        self.id
    }

    /// Returns its mode: that which its holder wanted to be shown last.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Returns its place in the queue.
    pub fn ticket(&self) -> Ticket {
        self.ticket
    }

    /// Returns whether it is inside.
    pub fn holds(&self) -> bool {
        self.token.is_some()
    }

    /// Returns the grant of the same client that it stands behind, if it was announced and has not asked by itself yet.
    pub fn behind(&self) -> Option<AcquisitionId> {
        self.behind
    }

    /// Returns it as an engine shows it.
    pub(super) fn shown(&self) -> Waiter {
        let since = Duration::from_micros(u64::try_from(self.since).unwrap_or_default());
        let since: SystemTime = UNIX_EPOCH + since;
        Waiter::new(self.id, self.owner, self.client.clone(), self.mode, since)
    }
}

impl<T: Default> Contender<T> {
    /// Creates a waiter, whose lease is still to be set.
    pub(super) fn new(request: &Request, ticket: Ticket, since: i64) -> Self {
        Self {
            id: request.id,
            mode: request.mode,
            owner: request.owner,
            client: request.client.clone(),
            ticket,
            fairness: request.fairness,
            lease: request.lease,
            since,
            expires: Moment::ZERO,
            token: None,
            revoked: false,
            behind: None,
            kept: T::default(),
        }
    }
}
