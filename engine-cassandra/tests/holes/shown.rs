//! What an inspection shows of a holder: since when it is inside.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ylock_core::engine::{Engine, Grant, Holding, Renewal};
use ylock_core::environment::Environment;
use ylock_engine_cassandra::CassandraEngine;
use ylock_engine_cassandra::algorithm::store::State;
use ylock_engine_cassandra::options::Protocol;

use crate::fake::{self, LEASE, World};
use crate::fixture::{Fixture, bounded, until};

fn wall(world: &World) -> SystemTime {
    UNIX_EPOCH + Duration::from_micros(u64::try_from(world.wall_micros()).unwrap())
}

/// Returns since when the one holder is inside, as another client sees it.
async fn since(fixture: &Fixture) -> SystemTime {
    let seen = fixture.contestant().0.inspect(&fixture.key).await.unwrap();
    let [holder] = &seen.holders[..] else { panic!("not one holder: {seen:?}") };
    holder.since
}

async fn renew(engine: &CassandraEngine, grant: &Grant) {
    let renewed = engine.renew(&[Holding::new(grant.clone(), None)]).await.remove(0).unwrap();
    assert!(matches!(renewed, Renewal::Renewed { .. }), "{renewed:?}");
}

/// No client waits, so its row does not say that it is inside before it is renewed.
#[tokio::test(start_paused = true)]
async fn a_holder_that_entered_alone_is_shown_since_then() {
    bounded(async {
        let fixture = Fixture::new();
        let began = wall(&fixture.world);
        let (engine, request) = fixture.contestant();
        let grant = engine.acquire(&request).await.unwrap().unwrap();
        let entered = wall(&fixture.world);
        for _ in 0..3 {
            let since = since(&fixture).await;
            assert!(since >= began && since <= entered, "{since:?}, and it entered at {entered:?}");
            tokio::time::sleep(LEASE / 5).await;
            renew(&engine, &grant).await;
        }
    })
    .await;
}

/// Not since it began to wait, and not since its last renewal.
#[tokio::test(start_paused = true)]
async fn a_holder_that_has_waited_is_shown_since_it_entered() {
    bounded(async {
        let fixture = Fixture::new();
        let (holder, held) = fixture.contestant();
        holder.acquire(&held).await.unwrap().unwrap();
        let (engine, request) = fixture.contestant();
        let engine = Arc::new(engine);
        let waiting = tokio::spawn({
            let engine = Arc::clone(&engine);
            async move { engine.acquire(&request).await.unwrap().unwrap() }
        });
        tokio::time::sleep(LEASE / 2).await;
        let left = wall(&fixture.world);
        holder.release(&fixture.key, held.id, None).await.unwrap();
        let grant = waiting.await.unwrap();
        let entered = wall(&fixture.world);
        until("its row says that it is inside", || fixture.rows().iter().any(|row| row.state == State::Held))
            .await;
        for _ in 0..3 {
            let since = since(&fixture).await;
            assert!(since >= left && since <= entered, "{since:?}, and it entered at {entered:?}");
            tokio::time::sleep(LEASE / 5).await;
            renew(&engine, &grant).await;
        }
    })
    .await;
}

/// The look that lets it in takes two seconds.
#[tokio::test(start_paused = true)]
async fn a_holder_of_the_old_lock_is_shown_since_it_entered() {
    bounded(async {
        let fixture = Fixture::new();
        let (look, began) = (Duration::from_secs(2), wall(&fixture.world));
        let engine = fake::engine_of(&fixture.fake, &fixture.world, Protocol::ShadowRows);
        let (_, request) = fixture.contestant();
        // The look before the claim, and before that in this list the one after it.
        fixture.fake.slow_read(look);
        fixture.fake.slow_read(Duration::from_millis(1));
        engine.acquire(&request).await.unwrap().unwrap();
        assert!(since(&fixture).await >= began + look);
    })
    .await;
}
