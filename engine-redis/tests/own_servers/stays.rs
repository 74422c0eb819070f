//! What stays of acquisitions that went wrong: nothing, in the client and on the server.

use std::sync::Arc;
use std::time::Duration;

use ylock_core::engine::{AcquisitionId, Engine};
use ylock_core::options::HandOver;
use ylock_core::{ErrorKind, Key, Options, Ylock};
use ylock_engine_redis::RedisEngine;

use super::own_server::{Disk, OwnServer};
use super::{LOCKS, LONG, client, until, within};

async fn both(server: &OwnServer, lease: Duration) -> (Arc<RedisEngine>, Ylock) {
    let options = server.options().with_lease(lease).with_request_timeout(lease * 3 / 10);
    let engine = Arc::new(RedisEngine::connect(&options).await.unwrap());
    let shared: Arc<dyn Engine> = Arc::clone(&engine) as Arc<dyn Engine>;
    let options = Options::default().with_lease(lease).with_hand_over(HandOver::up_to(0, Duration::ZERO));
    (engine, Ylock::from_arc(shared).with_options(options))
}

async fn nothing_stays(engine: &RedisEngine, ylock: &Ylock) {
    until("no name is in use", async || ylock.keys_in_use() == 0).await;
    until("nothing stays", async || engine.in_memory().iter().all(|(_, count)| *count == 0)).await;
}

#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn nothing_stays_of_acquisitions_that_failed_in_an_outage() {
    let (mut server, lease) = (OwnServer::start(Disk::Nothing).await, Duration::from_secs(3));
    let (engine, ylock) = both(&server, lease).await;
    server.kill();
    for _ in 0..2 {
        let all: Vec<_> = (0..200)
            .map(|number| {
                let locks = ylock.locks("users");
                tokio::spawn(async move { locks.write(number.to_string()).await.map(drop) })
            })
            .collect();
        for one in all {
            assert_eq!(one.await.unwrap().unwrap_err().kind(), ErrorKind::Unavailable);
        }
        nothing_stays(&engine, &ylock).await;
    }
    server.start_again().await;
    until("the server is back", async || ylock.locks("users").write("alice").await.is_ok()).await;
    nothing_stays(&engine, &ylock).await;
}

/// Other acquisitions of this client were to follow.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn nothing_stays_of_those_who_were_to_follow_a_release_that_was_given_up() {
    let (mut server, lease) = (OwnServer::start(Disk::Nothing).await, Duration::from_secs(3));
    let (engine, ylock) = both(&server, lease).await;
    let (mut guards, mut waiting) = (Vec::new(), Vec::new());
    for number in 0..50 {
        guards.push(ylock.locks("users").write(number.to_string()).await.unwrap());
        let locks = ylock.locks("users");
        waiting.push(tokio::spawn(async move { locks.write(number.to_string()).await.map(drop) }));
    }
    tokio::task::yield_now().await;
    server.kill();
    drop(guards);
    for one in waiting {
        drop(one.await.unwrap());
    }
    nothing_stays(&engine, &ylock).await;
}

/// Writers are announced behind a reader, and give up, again and again, as long as the reader holds.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_lock_that_is_held_for_long_does_not_grow_by_those_who_gave_up() {
    let server = OwnServer::start(Disk::Nothing).await;
    let (one, two) = (client(&server, LONG).await, client(&server, LONG).await);
    let reader = one.locks("users").read("alice").await.unwrap();
    let keys: Vec<String> = server.ask(&["KEYS", LOCKS]).await.unwrap();
    for _ in 0..300 {
        for ylock in [&one, &two] {
            let waited = ylock.locks("users").write("alice").within(Duration::from_millis(4)).await;
            // So short a time may be over before there is any answer, and then the call fails with `Unavailable`.
            assert!(waited.map_or_else(|error| error.kind() == ErrorKind::Unavailable, |it| it.is_none()));
        }
    }
    let fields = async || server.ask::<Vec<String>>(&["HKEYS", &keys[0]]).await.unwrap();
    let left = async || {
        let marks = ["x:", "y:", "xf", "xn"];
        let all = fields().await;
        all.into_iter().filter(|field| !marks.iter().any(|mark| field.starts_with(mark))).collect::<Vec<_>>()
    };
    until("no writer waits", async || super::waiters(&one).await == 0).await;
    let left = left().await;
    // Token and expiry; the holder and its owner; the number of holders, and when their leases end.
    assert!(left.len() <= 8, "{left:?}");
    drop(reader);
    drop(within("it is free at once", two.locks("users").write("alice")).await.unwrap());
}

/// The client knows nothing of the acquisition, and the server has nothing of the lock: a request of it may still be on its way.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn what_was_undone_is_remembered_for_a_minute_and_not_for_ever() {
    let server = OwnServer::start(Disk::Nothing).await;
    let engine = RedisEngine::connect(&server.options()).await.unwrap();
    let (key, id) = (Key::new("users", "alice").unwrap(), AcquisitionId::new(&*engine.environment()));
    engine.release(&key, id, None).await.unwrap();
    let keys: Vec<String> = server.ask(&["KEYS", LOCKS]).await.unwrap();
    let left: i64 = server.ask(&["PTTL", &keys[0]]).await.unwrap();
    assert!((30_000..=60_000).contains(&left), "it stays for {left} ms");
}
