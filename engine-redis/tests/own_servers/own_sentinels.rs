//! A master, a replica and three Sentinels that belong to one test.

use std::time::Duration;

use ylock_engine_redis::RedisOptions;

use super::own_server::{Disk, OwnServer};
use super::until;

pub(crate) struct OwnSentinels {
    pub(crate) master: OwnServer,
    pub(crate) replica: OwnServer,
    pub(crate) sentinels: Vec<OwnServer>,
}

impl OwnSentinels {
    pub(crate) async fn start() -> Self {
        let master = OwnServer::start(Disk::Nothing).await;
        let port = master.port().to_string();
        let replica = OwnServer::start_with(Disk::Nothing, &["--replicaof", "127.0.0.1", &port]).await;
        let mut sentinels = Vec::new();
        for _ in 0..3 {
            sentinels.push(OwnServer::start_sentinel(&port).await);
        }
        let all = Self { master, replica, sentinels };
        for sentinel in &all.sentinels {
            until("the Sentinels know each other", async || {
                let flat: Vec<String> =
                    sentinel.ask(&["SENTINEL", "MASTER", "locks"]).await.unwrap_or_default();
                let has = |name: &str, value: &str| flat.chunks(2).any(|pair| pair == [name, value]);
                has("num-other-sentinels", "2") && has("num-slaves", "1") && has("flags", "master")
            })
            .await;
        }
        all
    }

    pub(crate) fn options(&self) -> RedisOptions {
        let hosts = self.sentinels.iter().map(|sentinel| ("127.0.0.1".to_owned(), sentinel.port()));
        RedisOptions::sentinel(hosts, "locks").with_connect_timeout(Duration::from_secs(3))
    }

    /// Until the Sentinels say that the replica has taken over.
    pub(crate) async fn await_failover(&self) {
        let expected = self.replica.port().to_string();
        for sentinel in &self.sentinels {
            until("the replica takes over", async || {
                let question = ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", "locks"];
                let (_, port): (String, String) = sentinel.ask(&question).await.unwrap();
                port == expected
            })
            .await;
        }
    }
}
