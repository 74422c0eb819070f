//! What a long queue costs, and what stays in it.

use std::time::Duration;

use ylock_core::engine::Engine;
use ylock_core::{Mode, Owner};
use ylock_engine_redis::{RedisEngine, scripts};

use super::own_server::{Disk, OwnServer};
use super::schedules::{acquire, engine, request};
use super::{LOCKS, until};

/// One lock, used by its scripts: with as many waiters as a test needs, and no client that asks for them in between.
struct Queue {
    server: OwnServer,
    acquire: String,
    release: String,
}

impl Queue {
    async fn start() -> Self {
        let server = OwnServer::start(Disk::Nothing).await;
        let load = async |text| server.ask::<String>(&["SCRIPT", "LOAD", text]).await.unwrap();
        let (acquire, release) = (load(scripts::ACQUIRE).await, load(scripts::RELEASE).await);
        Self { server, acquire, release }
    }

    async fn join(&self) -> String {
        let id = Owner::new().to_string();
        let lease = "3600000";
        let words = [
            &self.acquire,
            "1",
            "ylock:alice",
            &id,
            "w",
            lease,
            "queue",
            "fair",
            "-",
            lease,
            &id,
            "-",
            "a client",
        ];
        self.call(&words).await;
        id
    }

    async fn leave(&self, id: &str) {
        self.call(&[&self.release, "1", "ylock:alice", id, "0"]).await;
    }

    async fn call(&self, words: &[&str]) {
        let words: Vec<_> = ["EVALSHA"].iter().chain(words).copied().collect();
        self.server.command(&words).await;
    }

    /// How often a script has looked at a field.
    async fn looks(&self) -> u64 {
        let text: String = self.server.ask(&["INFO", "commandstats"]).await.unwrap();
        let count = text.split("cmdstat_hget:calls=").nth(1).and_then(|rest| rest.split(',').next());
        count.expect("they are counted").parse().unwrap()
    }
}

/// Of clients that come in turn always the same one may give up.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn joining_and_leaving_a_long_queue_cost_little_whoever_has_left_it() {
    const MANY: usize = 800;
    for every in 2..6 {
        let queue = Queue::start().await;
        let mut ids = Vec::new();
        for _ in 0..MANY {
            ids.push(queue.join().await);
        }
        for id in ids.iter().skip(every).step_by(every) {
            queue.leave(id).await;
        }
        let before = queue.looks().await;
        for _ in 0..10 {
            let id = queue.join().await;
            queue.leave(&id).await;
        }
        let looks = (queue.looks().await - before) / 10;
        assert!(looks < 300, "{looks} looks for one of {MANY}, of whom one in {every} has left");
    }
}

/// Each client dies while it waits behind a waiter that lives.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn nothing_stays_of_waiters_that_died_behind_one_that_lives() {
    let (server, long) = (OwnServer::start(Disk::Nothing).await, Duration::from_secs(60));
    let options = server.options().with_lease(Duration::from_secs(1)).with_request_timeout(long / 200);
    let (one, dying) = (engine(&server, long).await, RedisEngine::connect(&options).await.unwrap());
    acquire(&one, &request(&one, Mode::Write, long)).await;
    let lives = request(&one, Mode::Write, long);
    let waiting = tokio::spawn(async move { acquire(&one, &lives).await });
    let key = request(&dying, Mode::Write, long).key;
    let waiters = async || dying.inspect(&key).await.map_or(0, |seen| seen.queue.len());
    until("the first one waits", async || waiters().await == 1).await;
    for _ in 0..4 {
        let dies = request(&dying, Mode::Write, Duration::from_secs(1));
        tokio::select! {
            _ = dying.acquire(&dies) => panic!("it is not free"),
            () = until("it waits", async || waiters().await == 2) => {}
        }
        until("it is dead", async || waiters().await == 1).await;
    }
    let keys: Vec<String> = server.ask(&["KEYS", LOCKS]).await.unwrap();
    let fields: Vec<String> = server.ask(&["HKEYS", &keys[0]]).await.unwrap();
    let left = fields.iter().filter(|field| field.starts_with("a:")).count();
    assert!(left <= 2, "{fields:?}");
    waiting.abort();
}
