//! One key of the in-memory store: its holders and waiters. Pure: no clock, no waiting, no lock.

use std::sync::Arc;

use tokio::sync::Notify;

use crate::client_name::ClientName;
use crate::engine::{AcquisitionId, Request, Ticket};
use crate::environment::Moment;
use crate::mode::Mode;
use crate::options::Fairness;
use crate::owner::Owner;
use crate::token::StoreToken;

/// The contenders for one key: its holders and waiters.
#[derive(Debug, Default)]
pub(super) struct State {
    /// In the order of their tickets.
    contenders: Vec<Contender>,
}

/// One acquisition.
#[derive(Debug)]
pub(super) struct Contender {
    pub(super) id: AcquisitionId,
    pub(super) owner: Owner,
    pub(super) client: ClientName,
    pub(super) mode: Mode,
    ticket: Ticket,
    fairness: Fairness,
    /// Microseconds of the wall clock: since when it waits, or holds.
    pub(super) since: i64,
    /// The moment at which it is gone unless it shows itself again.
    expires: Moment,
    /// Its token, from the moment it holds.
    pub(super) token: Option<StoreToken>,
    revoked: bool,
    /// The grant of the same client that it waits behind.
    behind: Option<AcquisitionId>,
    wake: Arc<Notify>,
}

impl Contender {
    pub(super) fn holds(&self) -> bool {
        self.token.is_some()
    }
}

/// The state in which a holder finds its grant when it renews.
pub(super) enum Seen {
    Held,
    Revoked,
    Gone,
}

impl State {
    pub(super) fn is_empty(&self) -> bool {
        self.contenders.is_empty()
    }

    pub(super) fn contenders(&self) -> &[Contender] {
        &self.contenders
    }

    /// Forgets the contenders whose lease has ended.
    pub(super) fn expire(&mut self, now: Moment) {
        let before = self.contenders.len();
        self.contenders.retain(|contender| contender.expires > now);
        if self.contenders.len() < before {
            self.wake_all();
        }
    }

    /// Returns the moment at which the next contender expires that `id` may be waiting for.
    pub(super) fn next_expiry(&self, id: AcquisitionId) -> Option<Moment> {
        self.contenders.iter().filter(|other| other.id != id).map(|other| other.expires).min()
    }

    /// Puts a request into the queue, or keeps it there; returns what wakes it.
    pub(super) fn join(
        &mut self,
        request: &Request,
        ticket: Ticket,
        expires: Moment,
        since: i64,
    ) -> Arc<Notify> {
        if let Some(own) = self.contenders.iter_mut().find(|contender| contender.id == request.id) {
            own.expires = expires;
            own.behind = None;
            return Arc::clone(&own.wake);
        }
        let wake = Arc::new(Notify::new());
        let place = self.contenders.partition_point(|other| other.ticket <= ticket);
        let contender = Contender {
            id: request.id,
            owner: request.owner,
            client: request.client.clone(),
            mode: request.mode,
            ticket,
            fairness: request.fairness,
            since,
            expires,
            token: None,
            revoked: false,
            behind: None,
            wake: Arc::clone(&wake),
        };
        self.contenders.insert(place, contender);
        wake
    }

    /// Returns whether a waiting contender may enter now.
    pub(super) fn may_enter(&self, id: AcquisitionId) -> bool {
        let Some(place) = self.place(id) else { return false };
        let own = &self.contenders[place];
        self.contenders.iter().enumerate().filter(|(other, _)| *other != place).all(|(other_place, other)| {
            let before = other_place < place && own.fairness != Fairness::Unfair;
            !other.mode.conflicts_with(own.mode) || !(other.holds() || before)
        })
    }

    pub(super) fn enter(&mut self, id: AcquisitionId, token: StoreToken, expires: Moment, since: i64) {
        if let Some(place) = self.place(id) {
            let own = &mut self.contenders[place];
            (own.token, own.expires, own.since) = (Some(token), expires, since);
        }
    }

    /// Returns whether a contender that conflicts with this one waits.
    pub(super) fn is_contended(&self, id: AcquisitionId) -> bool {
        let Some(own) = self.place(id).map(|place| &self.contenders[place]) else { return false };
        self.contenders.iter().any(|other| {
            !other.holds()
                && other.behind != Some(id)
                && other.id != id
                && other.mode.conflicts_with(own.mode)
        })
    }

    /// Renews a grant, and shows its mode from now on.
    pub(super) fn renew(&mut self, id: AcquisitionId, mode: Mode, expires: Moment) -> Seen {
        let Some(place) = self.place(id) else { return Seen::Gone };
        let own = &mut self.contenders[place];
        if own.revoked {
            // It stays until its holder has heard of it and releases it.
            return Seen::Revoked;
        }
        own.expires = expires;
        if std::mem::replace(&mut own.mode, mode) != mode {
            self.wake_all();
        }
        Seen::Held
    }

    /// Marks a waiter as standing behind a grant of its own client. Other waiters that stood there are removed.
    pub(super) fn stand_behind(&mut self, grant: AcquisitionId, waiter: Option<AcquisitionId>) {
        let before = self.contenders.len();
        self.contenders.retain(|contender| contender.behind != Some(grant) || Some(contender.id) == waiter);
        if self.contenders.len() < before {
            // Other contenders may have waited for one that was removed.
            self.wake_all();
        }
        if let Some(place) = waiter.and_then(|waiter| self.place(waiter)) {
            self.contenders[place].behind = Some(grant);
        }
    }

    /// Removes an acquisition. Returns whether it was there.
    pub(super) fn leave(&mut self, id: AcquisitionId) -> bool {
        let Some(place) = self.place(id) else { return false };
        self.contenders.remove(place);
        self.wake_all();
        true
    }

    pub(super) fn revoke(&mut self, id: AcquisitionId) -> bool {
        let holder = self.contenders.iter_mut().find(|contender| contender.id == id && contender.holds());
        holder.is_some_and(|holder| {
            holder.revoked = true;
            true
        })
    }

    fn place(&self, id: AcquisitionId) -> Option<usize> {
        self.contenders.iter().position(|contender| contender.id == id)
    }

    fn wake_all(&self) {
        for contender in self.contenders.iter().filter(|contender| !contender.holds()) {
            contender.wake.notify_one();
        }
    }
}
