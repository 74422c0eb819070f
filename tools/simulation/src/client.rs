//! A client process that acquires, holds and gives back, as the contract of an engine allows.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::{Either, select};
use ylock_core::engine::{AcquisitionId, Engine, Grant, Holding, Patience, Renewal, Request};
use ylock_core::environment::Environment;
use ylock_core::{Error, ErrorKind, Fairness, Key, Mode, Owner, StoreToken};

use crate::belief::Belief;
use crate::chance::Chance;
use crate::clocks::Clocks;
use crate::facade::{Built, Sets};
use crate::oracle::{Entry, Hold, Oracle};
use crate::places::Places;

/// The things that all clients of a run share.
#[derive(Debug)]
pub struct SharedState {
    /// The oracle that watches.
    pub oracle: Arc<Oracle>,
    /// The watcher of the queue.
    pub places: Arc<Places>,
    /// The locks.
    pub keys: Vec<Key>,
    /// The usual lease.
    pub lease: Duration,
    /// All leases, the usual one first.
    pub leases: Vec<Duration>,
    /// True if a renewal is believed although the lease had lapsed before.
    pub trusting: bool,
    /// The part of the acquisitions that do not wait.
    pub tries: f64,
    /// True if all acquisitions ask for the strict order.
    pub strict: bool,
    /// Whether tasks above the keeper take several locks at once.
    pub sets: Sets,
    /// Whether tasks above the keeper use what is built on locks.
    pub built: Built,
    /// True when no client begins anything new.
    pub is_over: AtomicBool,
    /// True so long after the trouble that nothing can be blamed on it.
    pub is_calm: AtomicBool,
    /// The number of clients and tasks that still do something.
    pub busy: AtomicUsize,
}

impl SharedState {
    /// Returns any of the leases.
    pub fn any_lease(&self, chance: &mut Chance) -> Duration {
        let leases = &self.leases;
        // Where there is no choice nothing is drawn: so a seed that was found stays what it was.
        if leases.len() == 1 { leases[0] } else { leases[chance.below(leases.len() as u64) as usize] }
    }
}

/// One client at one lock.
pub struct Client {
    /// The things that it shares with all clients.
    pub shared: Arc<SharedState>,
    /// Its engine.
    pub engine: Arc<dyn Engine>,
    /// Its clocks.
    pub clocks: Arc<Clocks>,
    /// Its decisions.
    pub chance: Chance,
}

/// A client or task that is busy until this is dropped, also when it is killed.
#[derive(Debug)]
pub struct Busy(Arc<SharedState>);

impl Busy {
    /// Counts one more client or task as busy.
    pub fn new(shared: &Arc<SharedState>) -> Self {
        shared.busy.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(shared))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Client {
    /// Goes in and out until the run is over.
    pub async fn live(mut self) {
        let _busy = Busy::new(&self.shared);
        while !self.shared.is_over.load(Ordering::Relaxed) {
            self.rest(Duration::from_secs(2)).await;
            if self.chance.happens(0.05) {
                self.revoke().await;
            } else {
                self.visit().await;
            }
        }
    }

    async fn rest(&mut self, most: Duration) {
        let time = self.chance.between(Duration::ZERO, most);
        self.clocks.sleep(time).await;
    }

    fn key(&mut self) -> Key {
        let number = self.chance.below(self.shared.keys.len() as u64);
        self.shared.keys[number as usize].clone()
    }

    /// Takes a lock away from a holder.
    async fn revoke(&mut self) {
        let key = self.key();
        let Ok(seen) = self.engine.inspect(&key).await else { return };
        if let Some(holder) = seen.holders.first() {
            drop(self.engine.revoke(&key, holder.id).await);
        }
    }

    async fn visit(&mut self) {
        let request = self.request();
        if request.patience == Patience::Queue {
            self.shared.places.begins(&self.clocks, &request);
        }
        let grant = if self.chance.happens(0.15) {
            let patience = self.chance.between(Duration::ZERO, self.shared.lease);
            let acquiring = self.engine.acquire(&request);
            match select(acquiring, self.clocks.sleep(patience)).await {
                Either::Left((answer, _)) => answer,
                // The future is dropped here, wherever it is.
                Either::Right(_) => Err(Error::new(ErrorKind::Indeterminate, "dropped")),
            }
        } else {
            self.engine.acquire(&request).await
        };
        if let Ok(Some(_)) = &grant {
            self.shared.places.enters(request.id);
        }
        self.shared.places.ends(request.id);
        match grant {
            Ok(None) => {
                if request.patience == Patience::Queue {
                    self.shared.oracle.complain("a client that waits was turned away".to_owned());
                }
                return;
            }
            Ok(Some(grant)) => {
                if request.patience == Patience::Try && grant.waited {
                    self.shared.oracle.complain("a try has waited".to_owned());
                }
                self.hold(grant).await;
            }
            Err(_) => {}
        }
        self.give_back(&request).await;
    }

    fn request(&mut self) -> Request {
        let modes = [Mode::Read, Mode::Write, Mode::Write];
        let fairness = [Fairness::Fair, Fairness::Fair, Fairness::Strict, Fairness::Unfair];
        let (key, id) = (self.key(), AcquisitionId::new(&*self.clocks));
        let mode = modes[self.chance.below(3) as usize];
        let owner = Owner::from_bytes(u128::from(self.chance.number()).to_be_bytes());
        let request = Request::new(
            key,
            id,
            mode,
            owner,
            crate::process::name_of(self.clocks.actor()),
            self.shared.any_lease(&mut self.chance),
        );
        let patience = if self.chance.happens(self.shared.tries) { Patience::Try } else { Patience::Queue };
        let fairness = fairness[self.chance.below(4) as usize];
        let request = request.with_patience(patience);
        if self.shared.strict {
            // The place is taken when the caller asks, as the keeper does.
            return request.with_fairness(Fairness::Strict).with_ticket(self.engine.ticket());
        }
        request.with_fairness(fairness)
    }

    /// Stays inside, renews, and changes what the lock protects. What the client writes may arrive when it has lost the lock long since.
    async fn hold(&mut self, mut grant: Grant) {
        let Some(token) = self.shared.oracle.token(grant.token.map(StoreToken::get)) else {
            return self.shared.oracle.complain("a grant without the token that the store gives".to_owned());
        };
        let hold = Hold {
            key: grant.key.clone(),
            mode: grant.mode,
            owner: grant.owner,
            token,
            clocks: Arc::clone(&self.clocks),
            belief: Belief::of(&grant, grant.sent),
            resumes: false,
            permit: None,
        };
        let Some(Entry { number, .. }) = self.shared.oracle.enter(hold) else { return };
        let read = self.shared.oracle.read(&grant.key, token);
        let renewals = self.chance.below(8);
        for _ in 0..renewals {
            self.clocks.sleep(grant.lease / 3).await;
            if grant.mode == Mode::Write && self.chance.happens(0.05) {
                // Before the store hears of it: from then on it is unknown whether readers may come in.
                grant.mode = Mode::Read;
                self.shared.oracle.downgrade(number);
            }
            if !self.renew(number, &mut grant).await {
                self.shared.oracle.leave(number);
                break;
            }
        }
        self.rest(grant.lease / 3).await;
        if let (Some(read), Mode::Write) = (read, grant.mode) {
            self.shared.oracle.write(&grant.key, token, read);
        }
        self.shared.oracle.leave(number);
    }

    /// Renews a grant. Returns whether the client may stay inside.
    async fn renew(&self, number: u64, grant: &mut Grant) -> bool {
        let holding = Holding::new(grant.clone(), None);
        match self.engine.renew(&[holding]).await.pop() {
            Some(Ok(Renewal::Renewed { sent, .. } | Renewal::Kept { sent })) => {
                grant.sent = sent;
                self.shared.oracle.renewed(number, Belief::of(grant, sent), self.shared.trusting)
            }
            Some(Err(_)) => true,
            Some(Ok(Renewal::Lost(_))) | None => false,
        }
    }

    /// Releases again and again until that is confirmed, or the store has forgotten the acquisition by itself.
    async fn give_back(&self, request: &Request) {
        let began = self.clocks.now();
        while self.clocks.now().since(began) < request.lease * 4 {
            if self.engine.release(&request.key, request.id, None).await.is_ok() {
                return;
            }
            self.clocks.sleep(Duration::from_millis(200)).await;
        }
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Client")
    }
}
