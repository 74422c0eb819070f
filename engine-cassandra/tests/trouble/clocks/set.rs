//! The clocks of the three nodes, which a test sets.

use std::time::Duration;

use futures_util::future::join_all;
use scylla::statement::Consistency;
use ylock_core::environment::SystemEnvironment;
use ylock_testkit::within;

use crate::coordinators::Coordinators;
use crate::nodes;

/// By how many seconds the clocks of the nodes are ahead of this machine's, node by node.
pub(super) type Ahead = [i64; 3];

pub(super) const RIGHT: Ahead = [0; 3];

/// What the system time of this machine may be corrected by while a node is asked, in milliseconds.
const TOLERANCE: i64 = 500;

/// Not `now()`, which Cassandra makes grow also when its clock is set back.
const TIME: &str = "SELECT toUnixTimestamp(currentTimestamp()) FROM system.local";

/// Clocks that are right when this is dropped, so that a test that fails does not spoil the next one.
#[derive(Debug)]
pub(super) struct Clocks {
    pub(super) coordinators: Coordinators,
}

impl Clocks {
    pub(super) async fn connect() -> Self {
        Self { coordinators: Coordinators::connect().await }
    }

    /// Sets all clocks.
    ///
    /// # Panics
    /// If a node does not go by its clock: otherwise tests would pass that have tried nothing.
    pub(super) async fn set(&self, ahead: Ahead) {
        tokio::task::spawn_blocking(move || set(ahead)).await.unwrap();
        let seen = join_all((0..).zip(ahead).map(async |(index, ahead)| {
            let (early, time, late) = self.ask(index + 1).await;
            (early..=late).contains(&(time - ahead * 1_000))
        }));
        assert_eq!(seen.await, [true; 3], "nodes that go by the clocks that were set: {ahead:?}");
    }

    /// Asks a node what time it is; in milliseconds, as the time of this machine before and after.
    async fn ask(&self, node: usize) -> (i64, i64, i64) {
        let environment = SystemEnvironment::shared();
        let now = || environment.wall_micros() / 1_000;
        let statement = self.coordinators.statement(node, Consistency::One, TIME);
        let asked = async {
            loop {
                let before = now();
                if let Ok(answer) = self.coordinators.session.query_unpaged(statement.clone(), ()).await {
                    let (time,) = answer.into_rows_result().unwrap().single_row::<(i64,)>().unwrap();
                    return (before - TOLERANCE, time, now() + TOLERANCE);
                }
            }
        };
        within(Duration::from_secs(60), "the node answers", asked).await
    }
}

impl Drop for Clocks {
    fn drop(&mut self) {
        set(RIGHT);
    }
}

fn set(ahead: Ahead) {
    (1..).zip(ahead).for_each(|(node, ahead)| nodes::set_clock(node, ahead));
}
