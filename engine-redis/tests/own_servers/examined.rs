//! What servers tell of themselves to those who look after them.

use std::time::Duration;

use ylock_core::engine::Engine;
use ylock_engine_redis::RedisEngine;
use ylock_engine_redis::options::Eviction;

use super::own_server::{Disk, OwnServer};

#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_server_that_throws_away_locks_is_a_risk_and_the_line_that_mends_it_does() {
    let more = ["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"];
    let server = OwnServer::start_with(Disk::AppendOnly, &more).await;
    let options = server.options().with_eviction(Eviction::LostLocksAccepted);
    let engine = RedisEngine::connect(&options).await.unwrap();
    let seen = engine.diagnose().await.unwrap();
    assert!(
        seen.facts.iter().any(|(what, text)| *what == "persistence" && text.contains("appendonly is on"))
    );
    let [risk] = &seen.findings[..] else { panic!("{seen:?}") };
    assert!(risk.what.contains("allkeys-lru"), "{risk:?}");
    let words: Vec<_> = risk.remedy.split(' ').collect();
    let address = ["redis-cli", "-h", "127.0.0.1", "-p", &server.port().to_string()].map(str::to_owned);
    assert_eq!(words[..5], address);
    server.command(&words[5..]).await;
    assert_eq!(engine.diagnose().await.unwrap().findings, []);
}

#[cfg(target_os = "linux")]
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_clock_that_is_wrong_is_told() {
    let mut clock = ylock_testkit::own_servers::SetClock::make();
    let server = OwnServer::start_by(&clock).await;
    let engine = RedisEngine::connect(&server.options()).await.unwrap();
    let apart = async || engine.diagnose().await.unwrap().servers[0].clock.unwrap().apart();
    assert!(apart().await < Duration::from_secs(1));
    let time = async || {
        let (seconds, micros): (i64, i64) = server.ask(&["TIME"]).await.unwrap();
        seconds * 1_000_000 + micros
    };
    clock.backwards(Duration::from_secs(3_600), time).await;
    let behind = apart().await;
    assert!(behind > Duration::from_secs(3_590) && behind <= Duration::from_secs(3_601), "{behind:?}");
}

/// A user that may only keep locks is told less.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn what_the_user_may_not_ask_is_left_out() {
    let server = OwnServer::start(Disk::Nothing).await;
    let engine = RedisEngine::connect(&server.options()).await.unwrap();
    server.command(&["ACL", "SETUSER", "default", "-info", "-acl|whoami"]).await;
    let seen = engine.diagnose().await.unwrap();
    let [server] = &seen.servers[..] else { panic!("{seen:?}") };
    assert!(server.fault.is_none() && server.version.is_none() && server.login.is_none(), "{server:?}");
    assert!(server.clock.is_some() && server.round_trip.is_some(), "{server:?}");
}
