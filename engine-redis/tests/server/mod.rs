//! The server that `cargo xtask test` starts, as the tests see it.

#![allow(dead_code, reason = "each test binary uses another part of it")]

use std::time::Duration;

use ylock_engine_redis::options::Waiting;
use ylock_engine_redis::{RedisEngine, RedisOptions};

/// The lease of most tests: long enough for a busy machine, short enough to wait for.
pub(crate) const LEASE: Duration = Duration::from_secs(2);

/// Host and port of the server under test.
pub(crate) fn address() -> (String, u16) {
    let address = std::env::var("YLOCK_TEST_REDIS")
        .expect("YLOCK_TEST_REDIS names the server: run `cargo xtask test redis`, which starts one");
    let (host, port) = address.rsplit_once(':').expect("host:port");
    (host.to_owned(), port.parse().expect("a port"))
}

/// How to reach it.
pub(crate) fn options() -> RedisOptions {
    let (host, port) = address();
    RedisOptions::new(host, port).with_lease(LEASE)
}

/// A new client's engine.
pub(crate) async fn engine(waiting: Waiting) -> RedisEngine {
    RedisEngine::connect(&options().with_waiting(waiting)).await.expect("the server under test answers")
}

/// A connection without ylock.
pub(crate) async fn raw() -> redis::aio::MultiplexedConnection {
    let client = redis::Client::open(address()).expect("an address");
    client.get_multiplexed_async_connection().await.expect("the server under test answers")
}

/// How many holders, waiters and marks the locks of a group still have. The last tokens stay for a while on purpose.
pub(crate) async fn left_behind(group: &str) -> usize {
    let mut connection = raw().await;
    let pattern = format!("ylock:{{*}}:{}:{group}:*", group.len());
    let keys: Vec<String> =
        redis::cmd("KEYS").arg(pattern).query_async(&mut connection).await.expect("the keys");
    let mut left = 0;
    for key in keys {
        let fields: Vec<String> =
            redis::cmd("HKEYS").arg(key).query_async(&mut connection).await.expect("the fields");
        left += fields.iter().filter(|field| !["t", "e"].contains(&field.as_str())).count();
    }
    left
}
