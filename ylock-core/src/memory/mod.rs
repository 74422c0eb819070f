//! The in-memory engine: always there, without a server.
//!
//! It is a real engine: leases on tokio's clock, a fair queue, tokens, loss. A program that runs alone can use it, and tests
//! of programs can, with paused time: leases then end when the test's clock says so.

mod state;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use tokio::sync::Notify;

use crate::engine::{
    AcquisitionId, Engine, Grant, Holder, Holding, Inspection, LossReason, Meter, Patience, Release, Renewal,
    Request, Ticket, Waiter,
};
use crate::environment::{Environment, Moment, SystemEnvironment};
use crate::error::{Error, ErrorKind, Result};
use crate::guarantees::Guarantees;
use crate::key::Key;
use crate::options::Options;
use crate::token::StoreToken;

use state::{Seen, State};

/// A store in the memory of this process. Its clones are the same store.
///
/// # Examples
/// Two clients of one store behave like two processes:
/// ```
/// # use ylock::{MemoryStore, Ylock};
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
/// let store = MemoryStore::new();
/// let (here, there) = (Ylock::new(store.engine()), Ylock::new(store.engine()));
/// let guard = here.locks("users").write("alice").await?;
/// assert!(there.locks("users").try_write("alice").await?.is_none());
/// # drop(guard); Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct MemoryStore(Arc<Inner>);

struct Inner {
    environment: Arc<dyn Environment>,
    keys: Mutex<HashMap<Key, State>>,
    /// One counter for all keys, so that a key that was forgotten goes on with larger tokens.
    last_token: AtomicU64,
    last_ticket: AtomicI64,
}

impl MemoryStore {
    /// Creates a new, empty store on tokio's clock.
    #[allow(clippy::new_without_default, reason = "two stores are never equal, so there is no default one")]
    pub fn new() -> Self {
        Self::in_environment(SystemEnvironment::on_tokio_clock())
    }

    /// Creates a new, empty store in another environment.
    pub fn in_environment(environment: Arc<dyn Environment>) -> Self {
        Self(Arc::new(Inner {
            environment,
            keys: Mutex::default(),
            last_token: AtomicU64::new(0),
            last_ticket: AtomicI64::new(0),
        }))
    }

    /// Creates the engine of a new client over this store.
    pub fn engine(&self) -> MemoryEngine {
        MemoryEngine { store: self.clone(), meter: Meter::default() }
    }

    /// Returns how many keys the store knows: those that are held or waited for.
    pub fn len(&self) -> usize {
        self.0.keys.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Returns whether no client holds or waits for anything.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Works on one key, without the contenders whose lease has ended; forgets the key if no contender is left.
    fn with<T>(&self, key: &Key, work: impl FnOnce(&mut State, Moment) -> T) -> T {
        let now = self.0.environment.now();
        let mut keys = self.0.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let state = keys.entry(key.clone()).or_default();
        state.expire(now);
        let result = work(state, now);
        if state.is_empty() {
            keys.remove(key);
        }
        result
    }

    fn wall(&self) -> i64 {
        self.0.environment.wall_micros()
    }

    fn next_token(&self) -> Result<StoreToken> {
        // Not below the tokens that another engine has given, or this one before the program was started again: those that are not far smaller follow the clock too.
        let clock = u64::try_from(self.wall()).unwrap_or(0);
        let follow = |last: u64| Some(clock.max(last + 1));
        let last = self.0.last_token.fetch_update(Ordering::Relaxed, Ordering::Relaxed, follow);
        let number = clock.max(last.unwrap_or(0) + 1);
        StoreToken::new(number)
            .ok_or_else(|| Error::new(ErrorKind::Unexpected, "the store has run out of tokens"))
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").field("keys", &self.len()).finish_non_exhaustive()
    }
}

/// The engine of one client over a [`MemoryStore`].
#[derive(Clone, Debug)]
pub struct MemoryEngine {
    store: MemoryStore,
    /// For the contract: nothing is sent anywhere.
    meter: Meter,
}

impl MemoryEngine {
    /// Creates an engine over a store of its own.
    #[allow(clippy::new_without_default, reason = "two stores are never equal, so there is no default one")]
    pub fn new() -> Self {
        MemoryStore::new().engine()
    }

    /// Enters if possible, staying in the queue otherwise.
    fn try_enter(&self, request: &Request, ticket: Ticket) -> Result<Attempt> {
        let wall = self.store.wall();
        self.store.with(&request.key, |state, now| {
            let wake = state.join(request, ticket, now.plus(request.lease), wall);
            if !state.may_enter(request.id) {
                let expiry = state.next_expiry(request.id);
                let pause = expiry.map_or(request.lease, |expiry| expiry.since(now));
                return Ok(Attempt::Wait { wake, pause });
            }
            // Drawn only now, under the lock of the store: a contender that enters later draws later.
            let token = self.store.next_token()?;
            state.enter(request.id, token, now.plus(request.lease), wall);
            let contended = state.is_contended(request.id);
            Ok(Attempt::Entered(Grant::of(request, Some(token), now, contended)))
        })
    }

    fn renew_one(&self, holding: &Holding) -> Renewal {
        let (grant, wall) = (&holding.grant, self.store.wall());
        let next = holding.next.as_ref().map(|next| (next, next.ticket.unwrap_or_else(|| self.ticket())));
        self.store.with(&grant.key, |state, now| {
            let expires = now.plus(grant.lease);
            match state.renew(grant.id, grant.mode, expires) {
                Seen::Gone => Renewal::Lost(LossReason::Gone),
                Seen::Revoked => Renewal::Lost(LossReason::Revoked),
                Seen::Held => {
                    if let Some((next, ticket)) = next {
                        state.join(next, ticket, expires, wall);
                    }
                    state.stand_behind(grant.id, next.map(|(next, _)| next.id));
                    Renewal::Renewed { sent: now, contended: state.is_contended(grant.id) }
                }
            }
        })
    }
}

enum Attempt {
    Entered(Grant),
    Wait { wake: Arc<Notify>, pause: Duration },
}

#[async_trait]
impl Engine for MemoryEngine {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn guarantees(&self) -> Guarantees {
        Guarantees::ALL.with_durable(false)
    }

    fn environment(&self) -> Arc<dyn Environment> {
        Arc::clone(&self.store.0.environment)
    }

    /// Accepts any lease: there is no request that could take too long. So a program finds out only on its own engine that that engine does
    /// not support a lease.
    fn check(&self, _: &Options) -> Result<()> {
        Ok(())
    }

    fn ticket(&self) -> Ticket {
        Ticket::from_number(self.store.0.last_ticket.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn meter(&self) -> &Meter {
        &self.meter
    }

    fn in_memory(&self) -> Vec<(&'static str, usize)> {
        // All of it is the store's, which stands for another process.
        Vec::new()
    }

    async fn acquire(&self, request: &Request) -> Result<Option<Grant>> {
        let mut waited = false;
        let ticket = request.ticket.unwrap_or_else(|| self.ticket());
        loop {
            match self.try_enter(request, ticket)? {
                Attempt::Entered(grant) => return Ok(Some(grant.after_waiting(waited))),
                Attempt::Wait { .. } if request.patience == Patience::Try => {
                    self.release(&request.key, request.id, None).await?;
                    return Ok(None);
                }
                Attempt::Wait { wake, pause } => {
                    waited = true;
                    // A third of the lease at most, because the place in the queue must be renewed too.
                    let pause = self.environment().sleep(pause.min(request.lease / 3));
                    tokio::select! {
                        // Either order is right: both lead to the same look, so neither can starve the other. Woken first,
                        // so that a ring and the end of a pause in the same moment make one look, not two.
                        biased;
                        () = wake.notified() => {}
                        () = pause => {}
                    }
                }
            }
        }
    }

    async fn renew(&self, holdings: &[Holding]) -> Vec<Result<Renewal>> {
        holdings.iter().map(|holding| Ok(self.renew_one(holding))).collect()
    }

    async fn release(&self, key: &Key, id: AcquisitionId, next: Option<&Request>) -> Result<Release> {
        let next = next.map(|next| (next, next.ticket.unwrap_or_else(|| self.ticket())));
        let wall = self.store.wall();
        let was_there = self.store.with(key, |state, now| {
            if let Some((next, ticket)) = next {
                state.join(next, ticket, now.plus(next.lease), wall);
            }
            state.stand_behind(id, None);
            state.leave(id)
        });
        Ok(if was_there { Release::Released } else { Release::WasGone })
    }

    async fn inspect(&self, key: &Key) -> Result<Inspection> {
        Ok(self.store.with(key, |state, _| {
            let mut inspection = Inspection::default();
            for contender in state.contenders() {
                let (id, owner, client) = (contender.id, contender.owner, contender.client.clone());
                let shown = Waiter::new(id, owner, client, contender.mode, time(contender.since));
                if contender.holds() {
                    let token = contender.token.map(Into::into);
                    inspection.holders.push(Holder::of(shown, token));
                } else {
                    inspection.queue.push(shown);
                }
            }
            inspection
        }))
    }

    async fn revoke(&self, key: &Key, id: AcquisitionId) -> Result<bool> {
        Ok(self.store.with(key, |state, _| state.revoke(id)))
    }

    async fn close(&self) -> Result<()> {
        Ok(())
    }
}

fn time(micros: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_micros(u64::try_from(micros).unwrap_or_default())
}
