//! Many locks that are held, and how many of them are lost.

use std::time::Duration;

use ylock_core::{Guard, Unlocked, Ylock};
use ylock_engine_cassandra::{CassandraEngine, CassandraOptions};

use super::cluster;

/// How many clients hold, so that not all renewals come at once.
const CLIENTS: usize = 10;

/// Locks of several clients, of the default lease and with this request timeout, or the default one.
pub(crate) struct Holds {
    clients: Vec<Ylock>,
    guards: Vec<Guard>,
}

impl Holds {
    pub(crate) async fn take(count: usize, request_timeout: Option<Duration>) -> Self {
        let options = cluster::options_with(super::LEASE);
        let options =
            request_timeout.into_iter().fold(options, |options, it| options.with_request_timeout(it));
        Self::take_by(count, &options).await
    }

    pub(crate) async fn take_by(count: usize, options: &CassandraOptions) -> Self {
        let lease = super::LEASE;
        let (mut clients, mut guards) = (Vec::new(), Vec::new());
        for _ in 0..CLIENTS {
            let engine = CassandraEngine::connect(options).await.expect("the cluster under test answers");
            let ylock = Ylock::new(engine).with_options(ylock_core::Options::default().with_lease(lease));
            let locks = ylock.locks(cluster::group());
            for name in 0..count / CLIENTS {
                guards.push(locks.write(format!("held-{name}")).await.unwrap());
            }
            clients.push(ylock);
        }
        Self { clients, guards }
    }

    pub(crate) fn lost(&self) -> usize {
        self.guards.iter().filter(|guard| !guard.is_valid()).count()
    }

    pub(crate) fn count(&self) -> usize {
        self.guards.len()
    }

    pub(crate) async fn give_back(self) {
        for guard in self.guards {
            assert_eq!(guard.unlock().await.unwrap(), Unlocked::Released);
        }
        for client in self.clients {
            client.close().await;
        }
    }
}
