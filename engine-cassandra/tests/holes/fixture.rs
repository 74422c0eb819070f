//! One lock on a store of one replica, and paused time.

use std::sync::Arc;
use std::time::Duration;

use ylock_core::engine::{AcquisitionId, Request};
use ylock_core::{ClientName, Key, Mode, Owner};
use ylock_engine_cassandra::CassandraEngine;
use ylock_engine_cassandra::algorithm::store::{Row, State};

use crate::fake::{self, Fake, LEASE, World, client};

/// See the [module](self).
pub(crate) struct Fixture {
    pub(crate) world: Arc<World>,
    pub(crate) fake: Arc<Fake>,
    pub(crate) key: Key,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let world = World::new();
        Self { fake: Fake::new(world.clone()), world, key: Key::new("users", "alice").unwrap() }
    }

    pub(crate) fn locks(&self) -> ylock_core::Locks {
        client(&self.fake, &self.world).locks("users")
    }

    /// A client without a keeper, and a request of it.
    pub(crate) fn contestant(&self) -> (CassandraEngine, Request) {
        let request = Request::new(
            self.key.clone(),
            AcquisitionId::new(&*self.world),
            Mode::Write,
            Owner::new(),
            ClientName::default(),
            LEASE,
        );
        (fake::engine(&self.fake, &self.world), request)
    }

    pub(crate) fn again(&self, request: &Request) -> Request {
        request.clone().with_id(AcquisitionId::new(&*self.world))
    }

    pub(crate) fn states(&self) -> Vec<State> {
        self.rows().iter().map(|row| row.state).collect()
    }

    /// Returns what the rows say that are there.
    pub(crate) fn rows(&self) -> Vec<Row> {
        self.fake.seen(&self.key).rows.into_iter().filter_map(|seen| seen.row).collect()
    }

    /// Waits until so many rows are in this state.
    pub(crate) async fn until(&self, state: State, count: usize) {
        until("so many rows are in this state", || {
            self.states().iter().filter(|seen| **seen == state).count() == count
        })
        .await;
    }
}

/// Fails a test that is stuck: in an hour of the paused time, which passes in seconds.
pub(crate) async fn bounded(test: impl Future<Output = ()>) {
    tokio::time::timeout(Duration::from_secs(3_600), test).await.expect("stuck");
}

/// Waits until the condition holds; time is paused, so the bound costs nothing.
pub(crate) async fn until(what: &str, condition: impl Fn() -> bool) {
    let bound = tokio::time::Instant::now() + LEASE * 6;
    while !condition() {
        assert!(tokio::time::Instant::now() < bound, "{what}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Whatever a test is about: a timestamp is sent once.
impl Drop for Fixture {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(self.fake.repeated(), [0; 0], "timestamps that were sent twice");
        }
    }
}
