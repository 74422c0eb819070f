//! Clients each of whose requests go to one node, and so by its clock.

use std::time::Duration;

use futures_util::future::join_all;
use ylock_core::engine::Engine;
use ylock_core::{Guard, Locks, Options, Unlocked, Ylock};
use ylock_engine_cassandra::options::{Expiry, SchemaMode};
use ylock_engine_cassandra::{CassandraEngine, CassandraOptions, driver_api};
use ylock_testkit::within;

use super::set::Clocks;
use crate::{LEASE, cluster};

/// What clients are told of the servers' clocks, and the table of those that are told so.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    pub(super) table: &'static str,
    pub(super) expiry: Expiry,
    pub(super) max_clock_skew: Duration,
}

impl Rule {
    /// Returns the options of a client that asks any node.
    pub(super) fn options(&self) -> CassandraOptions {
        self.tell(cluster::options_with(LEASE))
    }

    /// Makes the table, by one client: several at once could make several of one name.
    pub(super) async fn make_table(&self) {
        cluster::client_by(LEASE, &self.options()).await.close().await;
    }

    pub(super) fn tell(&self, options: CassandraOptions) -> CassandraOptions {
        let options = options.with_schema(SchemaMode::Create).with_table(self.table);
        options.with_expiry(self.expiry).with_max_clock_skew(self.max_clock_skew)
    }

    /// Returns the engine of a client at this node.
    pub(super) async fn engine(&self, clocks: &Clocks, node: usize) -> CassandraEngine {
        let session = clocks.coordinators.only(node).await;
        let options =
            self.tell(driver_api::options(session, cluster::options().keyspace()).with_lease(LEASE));
        CassandraEngine::connect(&options).await.expect("the node answers")
    }

    /// Returns a client at each node.
    pub(super) async fn clients(&self, clocks: &Clocks) -> Vec<Ylock> {
        join_all(NODES.map(async |node| over(self.engine(clocks, node).await))).await
    }
}

pub(super) fn over(engine: impl Engine) -> Ylock {
    Ylock::new(engine).with_options(Options::default().with_lease(LEASE))
}

/// The nodes, as `cargo xtask node` counts them.
pub(super) const NODES: std::ops::RangeInclusive<usize> = 1..=3;

/// One client at each node.
#[derive(Debug)]
pub(super) struct AtEach {
    pub(super) clients: Vec<Ylock>,
    group: String,
}

/// A lock that the client at a node holds.
#[derive(Debug)]
pub(super) struct Held {
    node: usize,
    name: String,
    guard: Guard,
}

/// How many locks a client holds.
const LOCKS: usize = 5;

impl AtEach {
    pub(super) async fn connect(rule: Rule, clocks: &Clocks) -> Self {
        rule.make_table().await;
        Self { clients: rule.clients(clocks).await, group: cluster::group() }
    }

    fn locks(&self, node: usize) -> Locks {
        self.clients[node - 1].locks(&self.group)
    }

    /// Lets the client at one node take locks, and each time that at another one try the same. Returns how often both held the lock.
    pub(super) async fn both_hold(&self, holder: usize, other: usize) -> usize {
        let mut times = 0;
        for number in 0..LOCKS {
            let name = format!("both-{holder}-{other}-{number}");
            let held = within(LEASE, "it is free", self.locks(holder).write(&name)).await.unwrap();
            let taken = self.locks(other).write(&name).now().await.unwrap();
            times += usize::from(taken.is_some_and(|taken| taken.is_valid() && held.is_valid()));
        }
        times
    }

    /// Lets each client take locks, to keep them.
    pub(super) async fn take(&self) -> Vec<Held> {
        let names = |node| (0..LOCKS).map(move |number| (node, format!("kept-{node}-{number}")));
        let takes = NODES.flat_map(names).map(async |(node, name)| {
            let guard = within(LEASE, "it is free", self.locks(node).write(&name)).await.unwrap();
            Held { node, name, guard }
        });
        join_all(takes).await
    }

    /// Checks that these are held, and that no client gets in at any node, be it known or new.
    pub(super) async fn no_other_gets_in(&self, all: &[Held], rule: Rule, clocks: &Clocks) {
        let newcomers = rule.clients(clocks).await;
        let tries = NODES.zip(&newcomers).flat_map(|at| all.iter().map(move |held| (at, held)));
        let tries = tries.map(async |((node, newcomer), held)| {
            if node != held.node {
                assert!(
                    self.locks(node).write(&held.name).now().await.unwrap().is_none(),
                    "{held:?} at {node}"
                );
            }
            let taken = newcomer.locks(&self.group).write(&held.name).now().await.unwrap();
            assert!(taken.is_none(), "{held:?} by a newcomer at {node}");
        });
        join_all(tries).await;
        assert!(all.iter().all(|held| held.guard.is_valid()), "a lock is lost: {all:?}");
    }

    /// Gives back what was held all the time.
    pub(super) async fn give_back(self, all: Vec<Held>) {
        for held in all {
            assert_eq!(held.guard.unlock().await.unwrap(), Unlocked::Released, "{}", held.name);
        }
        for client in self.clients {
            client.close().await;
        }
    }
}
