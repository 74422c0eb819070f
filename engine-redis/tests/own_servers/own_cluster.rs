//! A cluster that belongs to one test.

use redis::Value;
use ylock_engine_redis::RedisOptions;
use ylock_testkit::own_servers::free_port;

use super::own_server::{Disk, OwnServer};
use super::{LOCKS, until};

pub(crate) struct OwnCluster {
    /// The first three begin as masters; replicas of them follow, in the same order.
    pub(crate) servers: Vec<OwnServer>,
}

const MASTERS: usize = 3;
const SLOTS: usize = 16_384;

impl OwnCluster {
    pub(crate) async fn start(replicas: usize) -> Self {
        let mut servers = Vec::new();
        for _ in 0..MASTERS + replicas {
            let port = free_port("127.0.0.1").to_string();
            let words =
                ["--cluster-enabled", "yes", "--cluster-node-timeout", "1000", "--cluster-port", &port];
            servers.push((OwnServer::start_with(Disk::Nothing, &words).await, port));
        }
        for (number, (server, _)) in servers.iter().enumerate() {
            server.command(&["CLUSTER", "SET-CONFIG-EPOCH", &(number + 1).to_string()]).await;
            let (_, bus) = &servers[0];
            let first = servers[0].0.port().to_string();
            if number > 0 {
                server.command(&["CLUSTER", "MEET", "127.0.0.1", &first, bus]).await;
            }
            if number < MASTERS {
                let (from, to) = (SLOTS * number / MASTERS, SLOTS * (number + 1) / MASTERS - 1);
                server.command(&["CLUSTER", "ADDSLOTSRANGE", &from.to_string(), &to.to_string()]).await;
            }
        }
        let cluster = Self { servers: servers.into_iter().map(|(server, _)| server).collect() };
        let all = format!("cluster_known_nodes:{}\r", cluster.servers.len());
        cluster.await_info("the servers know each other", &all).await;
        for number in 0..replicas {
            let id = cluster.id(number).await;
            let replica = &cluster.servers[MASTERS + number];
            replica.command(&["CLUSTER", "REPLICATE", &id]).await;
            until("the replica follows", async || {
                let info: String = replica.ask(&["INFO", "replication"]).await.unwrap();
                info.contains("master_link_status:up")
            })
            .await;
        }
        cluster.await_info("the cluster works", "cluster_state:ok\r").await;
        cluster
    }

    pub(crate) fn options(&self) -> RedisOptions {
        RedisOptions::cluster(self.servers.iter().map(|server| ("127.0.0.1".to_owned(), server.port())))
    }

    async fn await_info(&self, what: &str, line: &str) {
        for server in &self.servers {
            until(what, async || {
                let info: String = server.ask(&["CLUSTER", "INFO"]).await.unwrap();
                info.contains(line)
            })
            .await;
        }
    }

    async fn id(&self, server: usize) -> String {
        self.servers[server].ask(&["CLUSTER", "MYID"]).await.unwrap()
    }

    /// The place of the lock of a group that has just one, and the master that keeps it.
    pub(crate) async fn place_of(&self, group: &str) -> (String, usize) {
        for number in 0..MASTERS {
            let pattern = format!("ylock:*:{group}:*");
            let keys: Vec<String> = self.servers[number].ask(&["KEYS", &pattern]).await.unwrap();
            if let Some(key) = keys.into_iter().next() {
                return (key, number);
            }
        }
        panic!("no server keeps a lock of {group}");
    }

    /// The number of locks that the replicas have.
    pub(crate) async fn locks_of_replicas(&self) -> usize {
        let mut locks = 0;
        for replica in &self.servers[MASTERS..] {
            locks += replica.ask::<Vec<String>>(&["KEYS", LOCKS]).await.unwrap().len();
        }
        locks
    }

    /// Gives a slot with its locks to another master, as resharding does.
    pub(crate) async fn move_slot(&self, place: &str, from: usize, to: usize) {
        self.begin_move(place, from, to).await;
        self.end_move(place, from, to).await;
    }

    /// Begins to move a slot: the lock is on the new master already, the other locks of its slot are not.
    pub(crate) async fn begin_move(&self, place: &str, from: usize, to: usize) {
        let (source, target) = (&self.servers[from], &self.servers[to]);
        let slot = self.slot(place).await;
        target.command(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &self.id(from).await]).await;
        source.command(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &self.id(to).await]).await;
        self.migrate(place, from, to).await;
    }

    /// Ends that move, with all that is left in the slot: a master that has keys of it refuses to give it away, if it has not heard from the new
    /// one before, in which case it deletes them.
    pub(crate) async fn end_move(&self, place: &str, from: usize, to: usize) {
        let (slot, id) = (self.slot(place).await, self.id(to).await);
        let left = self.servers[from].ask::<Vec<String>>(&["CLUSTER", "GETKEYSINSLOT", &slot, "100"]).await;
        for key in left.unwrap() {
            self.migrate(&key, from, to).await;
        }
        for server in [to, from] {
            self.servers[server].command(&["CLUSTER", "SETSLOT", &slot, "NODE", &id]).await;
        }
    }

    async fn migrate(&self, key: &str, from: usize, to: usize) {
        let port = self.servers[to].port().to_string();
        let asked = ["MIGRATE", "127.0.0.1", &port, key, "0", "5000"];
        let moved: Value = self.servers[from].ask(&asked).await.unwrap();
        // The key may have ended since it was listed: "NOKEY".
        assert!(matches!(moved, Value::Okay | Value::SimpleString(_)), "{moved:?}");
    }

    async fn slot(&self, place: &str) -> String {
        self.servers[0].ask::<u16>(&["CLUSTER", "KEYSLOT", place]).await.unwrap().to_string()
    }
}
