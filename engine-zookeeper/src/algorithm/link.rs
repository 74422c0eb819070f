//! What sends: one session with the servers, as far as requests go. Each has a time limit and is
//! counted, and what is confirmed is a heartbeat. It knows nothing of claims.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use ylock_core::ErrorKind;
use ylock_core::engine::Meter;
use ylock_core::environment::{BoxFuture, Environment, Moment};

use super::client::Client;
use super::floor::TokenFloor;
use super::heartbeat::{Heartbeat, Timing};
use super::in_flight::InFlight;
use super::store::{Fault, Store, WatchEvent, ends_session, failure, failure_of_transaction};
use super::watch::Watch;

/// A request of the store, not sent before it is polled.
type Request<'a, T> = futures_util::future::BoxFuture<'a, Result<T, Fault>>;

/// One session with the servers, as far as requests go; see the [module](self).
pub(crate) struct Link {
    pub(super) store: Arc<dyn Store>,
    pub(crate) environment: Arc<dyn Environment>,
    pub(crate) base: String,
    pub(super) floor: TokenFloor,
    /// Is quiet for as long as what is stored as the floor is what this session has read.
    floor_watch: Mutex<Watch>,
    request_timeout: Duration,
    pub(super) heartbeat: Heartbeat,
    meter: Meter,
    over: AtomicBool,
}

impl Link {
    pub(crate) fn new(store: Arc<dyn Store>, client: &Client) -> Self {
        let heartbeat = Heartbeat::since(store.asked());
        Self {
            store,
            environment: Arc::clone(&client.environment),
            base: client.options.base().to_owned(),
            floor: client.floor.clone(),
            floor_watch: Mutex::default(),
            request_timeout: client.options.request_timeout(),
            heartbeat,
            meter: client.meter.clone(),
            over: AtomicBool::new(false),
        }
    }

    /// Fails if the session is over. Without waiting: what is sent for a claim is sent in the step
    /// that looks at the claim.
    pub(super) fn attached(&self) -> Result<(), Fault> {
        self.store.is_attached().then_some(()).ok_or(Fault::ConnectionLoss)
    }

    /// Waits until the session has ended.
    pub(crate) fn until_over(&self) -> BoxFuture {
        self.store.until_over()
    }

    /// Returns whether the floor of the tokens is still the one that this session has read, as of
    /// the last answer.
    pub(super) fn knows_floor(&self) -> bool {
        self.floor_watch.lock().is_quiet()
    }

    pub(super) fn watch_floor(&self, told: WatchEvent) {
        *self.floor_watch.lock() = Watch::on(told);
    }

    pub(super) fn forget_floor(&self) {
        *self.floor_watch.lock() = Watch::default();
    }

    pub(crate) fn now(&self) -> Moment {
        self.environment.now()
    }

    /// Returns how long the servers keep the session without a sign of life.
    pub(crate) fn timeout(&self) -> Duration {
        self.store.timeout()
    }

    /// Returns the longest lease that can be given: nine tenths of it, the validity, are three
    /// quarters of the session.
    pub(crate) fn longest_lease(&self) -> Duration {
        self.timeout() * 5 / 6
    }

    /// Returns how long one request may take.
    pub(crate) fn request_timeout(&self) -> Duration {
        self.request_timeout
    }

    /// Returns whether the session has ended. When no server answers, the end is noticed long after
    /// validity is over, and decides nothing but when to make another session.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire) || self.store.is_over()
    }

    /// Gives the session up. What may still be relied on of it is not taken away: the servers hear
    /// of the end when they may have ended the session by themselves. A session is given up because
    /// nothing of it was confirmed for long, and that was looked at a moment ago: a write of
    /// another task may have been confirmed since, and a grant count from that; but no write is
    /// confirmed from now on.
    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::Release);
        self.store.end(self.heartbeat.end(self.timeout()));
    }

    /// Ends the session now, with all that it has in the store. No write is confirmed from now on,
    /// as in [`end`](Self::end): it would let a contender in whose node is about to go.
    pub(crate) fn close(&self) {
        self.over.store(true, Ordering::Release);
        self.heartbeat.end(self.timeout());
        self.store.end(Moment::ZERO);
    }

    /// Returns the moment just before the last confirmed write was sent.
    pub(crate) fn confirmed(&self) -> Moment {
        self.heartbeat.confirmed().sent
    }

    /// Returns for how long the leader has answered nothing, more or less.
    pub(crate) fn silence(&self) -> Duration {
        self.now().since(self.heartbeat.last_answered())
    }

    /// Returns the moment from which a lease counts: just before the last confirmed write was sent,
    /// or earlier.
    pub(crate) fn counts(&self, lease: Duration) -> Moment {
        self.heartbeat.confirmed().counts(lease, self.timeout())
    }

    /// Returns whether a lease of this length can be granted.
    pub(crate) fn covers(&self, lease: Duration) -> bool {
        self.heartbeat.covers(lease, self)
    }

    /// Shows the leader that this client is alive, if there is a connection. Not by a read: a
    /// server answers these without its leader.
    pub(super) async fn show(&self) -> Result<(), Fault> {
        self.attached()?;
        let sent = self.now();
        self.answer(InFlight::send(self.store.sync(&self.base))).await?;
        self.heartbeat.answered(sent, self);
        Ok(())
    }

    /// Sends a transaction. If it is confirmed, leases may count from before it was sent.
    pub(super) async fn transact<T>(&self, request: Request<'_, T>) -> Result<T, Fault> {
        self.attached()?;
        let send = || self.timed("transaction", failure_of_transaction, InFlight::send(request));
        self.heartbeat.write(self, send).await
    }

    /// Sends another write. If it is confirmed, leases may count from before it was sent.
    pub(super) async fn write<T>(&self, request: Request<'_, T>) -> Result<T, Fault> {
        self.attached()?;
        let send = || self.timed("write", failure, InFlight::send(request));
        self.heartbeat.write(self, send).await
    }

    /// Sends a read.
    pub(super) async fn ask<T>(&self, request: Request<'_, T>) -> Result<T, Fault> {
        self.attached()?;
        self.answer(InFlight::send(request)).await
    }

    /// Waits for the answer to a read.
    pub(super) async fn answer<T>(&self, request: InFlight<Request<'_, T>>) -> Result<T, Fault> {
        self.timed("read", failure, request).await
    }

    /// Waits until the server has caught up.
    pub(super) async fn caught_up(&self, request: InFlight<Request<'_, ()>>) -> Result<(), Fault> {
        self.timed("transaction", failure_of_transaction, request).await
    }

    /// Waits for the answer to a request, for as long as one may take, and counts it. The request
    /// was sent before this is polled: `select!` polls nothing when the task has used up its
    /// budget.
    async fn timed<T>(
        &self,
        operation: &'static str,
        failure: fn(&Fault) -> Option<ErrorKind>,
        request: InFlight<Request<'_, T>>,
    ) -> Result<T, Fault> {
        let request = async {
            tokio::select! {
                biased;
                answer = request.answer() => answer,
                () = self.environment.sleep(self.request_timeout) => Err(Fault::Timeout),
            }
        };
        let failure = |answer: &Result<T, Fault>| answer.as_ref().err().and_then(failure);
        let answer = self.meter.measure_as(&*self.environment, operation, request, failure).await;
        answer.inspect_err(|fault| self.look_at(fault))
    }

    fn look_at(&self, fault: &Fault) {
        if ends_session(fault) {
            self.end();
        }
    }
}

impl Timing for Link {
    fn now(&self) -> Moment {
        self.environment.now()
    }

    fn timeout(&self) -> Duration {
        self.store.timeout()
    }

    fn asked(&self) -> Moment {
        self.store.asked()
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("base", &self.base).finish_non_exhaustive()
    }
}
