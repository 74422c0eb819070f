//! The fixture of a case: what it runs with.

use std::future::Future;
use std::panic::Location;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use ylock_core::Options;
use ylock_core::engine::Engine;

use super::client::Client;
use super::harness::Harness;
use super::long::short_or_long;
use super::registry::Case;
use super::timed::Timed;
use super::waiting::{Bound, eventually, or_over};

/// Longer than a case takes, also on a slow machine.
const LONGER_THAN_ANY_CASE: Duration = Duration::from_secs(600);

/// For how many bounds a case may go on that makes progress; in the long run, which does more, for ten times as many.
const MOST_BOUNDS: u32 = 8;

/// One store, a group of its own in it, and the clients that a case made.
#[derive(Clone, Debug)]
pub struct Fixture(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    harness: Arc<dyn Harness>,
    group: Arc<str>,
    clients: Mutex<Vec<Client>>,
    /// How often an engine of the case has answered, apart from renewals.
    answers: Arc<AtomicU64>,
}

impl Fixture {
    /// Creates a fixture for one case: in a group that no other run has used.
    pub fn new(harness: Arc<dyn Harness>, case: Case) -> Self {
        let run: u64 = rand::random();
        let group = format!("conformance {} {run:016x}", case.name).into();
        Self(Arc::new(Inner { harness, group, clients: Mutex::default(), answers: Arc::default() }))
    }

    /// Returns the harness of the store.
    pub fn harness(&self) -> &dyn Harness {
        &*self.0.harness
    }

    /// Returns the group of this case.
    pub fn group(&self) -> Arc<str> {
        Arc::clone(&self.0.group)
    }

    /// Creates another client, with a lease so long that a busy machine cannot lose a lock by accident.
    pub async fn client(&self) -> Client {
        self.client_with(Options::default().with_lease(self.long_lease())).await
    }

    /// Creates several clients as by [`client`](Self::client).
    pub async fn clients(&self, count: usize) -> Vec<Client> {
        let mut clients = Vec::with_capacity(count);
        for _ in 0..count {
            clients.push(self.client().await);
        }
        clients
    }

    /// Creates another client, with the shortest lease.
    pub async fn short_lived(&self) -> Client {
        self.client_with(self.short_options()).await
    }

    /// Creates another client with these options.
    pub async fn client_with(&self, options: Options) -> Client {
        self.client_over(options, |engine| engine).await
    }

    /// Creates another client, with something between it and its engine.
    pub async fn client_over<W>(&self, options: Options, wrap: W) -> Client
    where
        W: FnOnce(Arc<dyn Engine>) -> Arc<dyn Engine>,
    {
        let engine = self.0.harness.engine_for(options.lease()).await;
        assert_eq!(engine.guarantees(), self.0.harness.guarantees(), "the harness knows its engine");
        let (trip, answers) = (self.0.harness.trip(), &self.0.answers);
        let client = Client::new(self, options, engine, |engine| wrap(Timed::over(engine, trip, answers)));
        self.0.clients.lock().push(client.clone());
        client
    }

    /// Returns options with the shortest lease.
    pub fn short_options(&self) -> Options {
        Options::default().with_lease(self.lease())
    }

    /// Returns the shortest lease.
    pub fn lease(&self) -> Duration {
        self.0.harness.lease()
    }

    /// Returns a lease that does not end within a case.
    pub fn long_lease(&self) -> Duration {
        (self.lease() * 4).max(LONGER_THAN_ANY_CASE)
    }

    /// Returns the result of the future; nothing when the case makes no progress for so long that it is stuck: when none of its engines answers
    /// anything but renewals, or the same goes on and on.
    pub(super) async fn unless_stuck<F: Future>(&self, future: F) -> Option<F::Output> {
        let answers = || self.0.answers.load(Ordering::Relaxed);
        // In one case nothing happens but that a lock is held.
        let longest = self.0.harness.bound() + self.0.harness.long_hold();
        let mut future = pin!(future);
        for _ in 0..short_or_long(MOST_BOUNDS, MOST_BOUNDS * 10) {
            let before = answers();
            match or_over(Bound::new(longest), future.as_mut()).await {
                None if answers() > before => {}
                ended => return ended,
            }
        }
        None
    }

    /// Returns the result of the future, however long it takes; panics when the case makes no progress.
    #[track_caller]
    pub fn to_its_end<F: Future>(&self, what: &str, future: F) -> impl Future<Output = F::Output> {
        let caller = Location::caller();
        async move {
            match self.unless_stuck(future).await {
                Some(output) => output,
                None => panic!("{caller}: no progress: {what}"),
            }
        }
    }

    /// Returns the time after which something that should happen at once has not happened.
    pub fn soon(&self) -> Duration {
        self.0.harness.trip() * 20 + self.0.harness.notice() * 10 + Duration::from_secs(1)
    }

    /// Returns the time after which a lock of a client that is gone, with the shortest lease, must be free.
    pub fn lapse(&self) -> Duration {
        self.lease() + self.soon()
    }

    /// Pretends to work under a lock, long enough for others to notice if they could get in.
    pub async fn work(&self) {
        self.work_for(1.0).await;
    }

    /// Pretends to work for a multiple of the time of [`work`](Self::work).
    pub async fn work_for(&self, times: f64) {
        let work = (self.0.harness.notice() + self.0.harness.trip()) * 2;
        tokio::time::sleep(work.mul_f64(times)).await;
    }

    /// Lets this many of the shortest leases pass.
    pub async fn leases(&self, count: f64) {
        tokio::time::sleep(self.lease().mul_f64(count)).await;
    }

    /// Returns a fixture on the same store and group, without the list of clients.
    pub(super) fn without_clients(&self) -> Self {
        let harness = Arc::clone(&self.0.harness);
        let answers = Arc::clone(&self.0.answers);
        Self(Arc::new(Inner { harness, group: self.group(), clients: Mutex::default(), answers }))
    }

    /// Checks that every client that lives forgets all its keys: the case has dropped its guards and futures.
    pub(super) async fn expect_nothing_in_use(&self) {
        let clients = self.0.clients.lock().clone();
        for client in clients.iter().filter(|client| client.process().is_running()) {
            let forgotten = || async { client.keys_in_use() == 0 };
            eventually(self.lapse(), "the client forgets every key that is not used any more", forgotten)
                .await;
        }
    }

    /// Lets what the clients that the case has killed had begun come to its end, when the case is over.
    pub(super) fn bury_the_dead(&self) {
        for client in std::mem::take(&mut *self.0.clients.lock()) {
            client.process().bury();
        }
    }
}
