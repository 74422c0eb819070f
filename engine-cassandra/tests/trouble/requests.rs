//! What becomes of single requests of clients that know nothing of the nodes yet.

use std::time::Duration;

use ylock_core::engine::{AcquisitionId, Ticket};
use ylock_core::environment::SystemEnvironment;
use ylock_core::{ClientName, ErrorKind, Key, Mode, Owner};
use ylock_engine_cassandra::algorithm::store::{Row, Slot, State, Store, Write};
use ylock_engine_cassandra::driver::Table;
use ylock_testkit::quiet_time;

use super::cluster;

/// A client that has sent nothing, and a key that no other client uses.
pub(crate) struct Newcomer {
    table: Table,
    key: Key,
    patience: Duration,
}

impl Newcomer {
    pub(crate) async fn connect() -> Self {
        let (options, environment) = (cluster::options_with(super::LEASE), SystemEnvironment::shared());
        let table = Table::connect(&options, &environment).await.expect("the cluster under test answers");
        let key = Key::new(cluster::group(), "name").unwrap();
        Self { table, key, patience: options.request_timeout() }
    }

    /// Reads, in less time than it would take to give up a node that hangs. Returns whether a second node was asked.
    pub(crate) async fn read(&self) -> bool {
        let began = quiet_time();
        self.table.read(&self.key).await.expect("two nodes of three are well");
        let took = quiet_time() - began;
        assert!(took < self.patience, "a read took {took:?}");
        self.table.hedged() > 0
    }

    /// Writes, and checks that it was sent once. Returns whether it was in vain.
    pub(crate) async fn write(&self) -> bool {
        let environment = SystemEnvironment::shared();
        let stamp = environment.wall_micros();
        let row = Row {
            acquisition: AcquisitionId::new(&*environment),
            mode: Mode::Write,
            state: State::Idle,
            ticket: Ticket::from_number(stamp),
            owner: Owner::new(),
            client: ClientName::default(),
            since: stamp,
            lease: super::LEASE,
            next: None,
            hints: None,
        };
        let write = Write { stamp, row, row_ttl: 10, claim: None, used: None };
        let slot = Slot::from_u128(environment.random_identity());
        let before = self.table.requests();
        let outcome = self.table.write(&self.key, slot, &write).await;
        assert_eq!(self.table.requests() - before, 1, "a copy of a write would end at another time");
        if let Err(error) = &outcome {
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        }
        outcome.is_err()
    }
}
