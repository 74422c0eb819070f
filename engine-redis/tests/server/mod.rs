//! The servers that `cargo xtask test` starts, as the tests see them.

#![allow(dead_code, reason = "each test binary uses another part of it")]

use std::time::Duration;

use redis::AsyncConnectionConfig;
use redis::aio::MultiplexedConnection;
use ylock_engine_redis::options::Notify;
use ylock_engine_redis::{RedisEngine, RedisOptions};

/// The lease of most tests: long enough for a busy machine, short enough to wait for.
pub(crate) const LEASE: Duration = Duration::from_secs(2);

const BOUND: Duration = Duration::from_secs(30);

/// The servers that a test is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Servers {
    Single,
    Sentinel,
    Cluster,
}

impl Servers {
    /// Returns the options that reach them.
    pub(crate) fn options(self) -> RedisOptions {
        let options = match self {
            Self::Single => {
                let (host, port) = address();
                RedisOptions::new(host, port)
            }
            Self::Sentinel => {
                let text = variable("YLOCK_TEST_REDIS_SENTINEL");
                let (hosts, service) = text.split_once('/').expect("host:port,host:port/service");
                RedisOptions::sentinel(addresses(hosts), service)
            }
            Self::Cluster => RedisOptions::cluster(addresses(&variable("YLOCK_TEST_REDIS_CLUSTER"))),
        };
        options.with_lease(LEASE)
    }

    /// A new client's engine.
    pub(crate) async fn engine(self, notify: Notify) -> RedisEngine {
        let options = self.options().with_notify(notify);
        RedisEngine::connect(&options).await.expect("the servers under test answer")
    }

    /// Connections without ylock to all that keep locks.
    pub(crate) async fn raw(self) -> Vec<MultiplexedConnection> {
        let masters = match self {
            Self::Single => vec![address()],
            Self::Sentinel => vec![master().await],
            Self::Cluster => addresses(&variable("YLOCK_TEST_REDIS_CLUSTER")),
        };
        let mut connections = Vec::new();
        for master in masters {
            connections.push(connect(master).await);
        }
        connections
    }

    /// Returns what is left of the locks of a group. The last tokens stay for a minute on purpose, and so do the marks of acquisitions that
    /// were undone while a request of theirs was on its way.
    pub(crate) async fn left_behind(self, group: &str) -> usize {
        let pattern = format!("ylock:{{*}}:{}:{group}:*", group.len());
        let mut left = 0;
        for mut connection in self.raw().await {
            let keys: Vec<String> =
                redis::cmd("KEYS").arg(&pattern).query_async(&mut connection).await.expect("the keys");
            for key in keys {
                let fields: Vec<String> =
                    redis::cmd("HKEYS").arg(key).query_async(&mut connection).await.expect("the fields");
                let stays = |field: &str| {
                    ["t", "e", "xf", "xn"].contains(&field)
                        || field.starts_with("x:")
                        || field.starts_with("y:")
                };
                left += fields.iter().filter(|field| !stays(field)).count();
            }
        }
        left
    }
}

/// Host and port of the single server.
pub(crate) fn address() -> (String, u16) {
    addresses(&variable("YLOCK_TEST_REDIS")).remove(0)
}

/// A connection to the single server, without ylock.
pub(crate) async fn raw() -> MultiplexedConnection {
    connect(address()).await
}

async fn connect(address: (String, u16)) -> MultiplexedConnection {
    let client = redis::Client::open(address).expect("an address");
    // A busy machine may take longer than the driver waits by itself.
    let patient =
        AsyncConnectionConfig::new().set_connection_timeout(Some(BOUND)).set_response_timeout(Some(BOUND));
    let connection = client.get_multiplexed_async_connection_with_config(&patient).await;
    connection.expect("the server under test answers")
}

async fn master() -> (String, u16) {
    let text = variable("YLOCK_TEST_REDIS_SENTINEL");
    let (hosts, service) = text.split_once('/').expect("host:port,host:port/service");
    let mut sentinel = connect(addresses(hosts).remove(0)).await;
    let mut question = redis::cmd("SENTINEL");
    question.arg("GET-MASTER-ADDR-BY-NAME").arg(service);
    let (host, port): (String, String) = question.query_async(&mut sentinel).await.expect("a master");
    (host, port.parse().expect("a port"))
}

fn addresses(hosts: &str) -> Vec<(String, u16)> {
    let address = |text: &str| {
        let (host, port) = text.rsplit_once(':').expect("host:port");
        (host.to_owned(), port.parse().expect("a port"))
    };
    hosts.split(',').map(address).collect()
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| {
        panic!("{name} names the servers: run `cargo xtask test redis`, which starts them")
    })
}
