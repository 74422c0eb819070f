//! What a client removes when it closes, and what goes by itself.

use std::sync::atomic::Ordering;
use std::time::Duration;

use ylock_core::engine::Engine;
use ylock_engine_cassandra::CassandraEngine;
use ylock_engine_cassandra::algorithm::store::State;

use crate::fake::{self, Fate};
use crate::fixture::{Fixture, bounded};
use crate::own_rows::rows;

/// A client that has held the lock and left it, where the servers' clocks agree: so nothing but its TTL keeps the row in the store.
async fn has_left(fixture: &Fixture) -> CassandraEngine {
    let options = fake::options().with_max_clock_skew(Duration::ZERO);
    let engine = fake::engine_with(&fixture.fake, &fixture.world, &options);
    let (_, request) = fixture.contestant();
    engine.acquire(&request).await.unwrap().unwrap();
    engine.release(&fixture.key, request.id, None).await.unwrap();
    engine
}

/// At a name that many clients use once, idle rows would slow down every look.
#[tokio::test(start_paused = true)]
async fn closing_removes_an_idle_row_that_has_not_ended() {
    bounded(async {
        let fixture = Fixture::new();
        let engine = has_left(&fixture).await;
        // Its TTL is eleven seconds.
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(fixture.states(), [State::Idle]);
        engine.close().await.unwrap();
        assert!(fixture.rows().is_empty(), "{:?}", fixture.rows());
    })
    .await;
}

/// A deletion of what is not there any more would leave a tombstone.
#[tokio::test(start_paused = true)]
async fn closing_asks_the_store_for_nothing_where_the_row_has_ended_by_itself() {
    bounded(async {
        let fixture = Fixture::new();
        let engine = has_left(&fixture).await;
        tokio::time::sleep(Duration::from_secs(12)).await;
        assert!(fixture.rows().is_empty(), "{:?}", fixture.rows());
        assert_eq!(rows(&engine), 1, "the client still knows of the row");
        engine.close().await.unwrap();
        assert_eq!(fixture.fake.erasures.load(Ordering::Relaxed), 0);
    })
    .await;
}

/// The release may not have arrived: then the lock would be held until the row ends. Its token is to be saved before the row may go.
#[tokio::test(start_paused = true)]
async fn closing_sends_a_release_in_doubt_again() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request) = fixture.contestant();
        engine.acquire(&request).await.unwrap().unwrap();
        fixture.fake.plan(|_, _| Fate::IsLate);
        engine.release(&fixture.key, request.id, None).await.unwrap_err();
        assert!(fixture.states() != [State::Idle]);
        fixture.fake.plan(|_, _| Fate::Arrives);
        engine.close().await.unwrap();
        assert!(fixture.rows().is_empty(), "{:?}", fixture.rows());
        let (other, request) = fixture.contestant();
        assert!(other.acquire(&request).await.unwrap().is_some());
    })
    .await;
}
