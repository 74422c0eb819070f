//! Renewals of many grants together, and of readers beside others.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use parking_lot::Mutex;
use ylock_core::Mode;
use ylock_core::engine::{Engine, Grant, Holding, Release, Renewal};
use ylock_core::environment::Environment;
use ylock_engine_cassandra::CassandraEngine;
use ylock_engine_cassandra::algorithm::store::State;

use crate::fake::{Fate, LEASE, client};
use crate::fixture::{Fixture, bounded};

/// As many as the keeper hands to the engine at once.
const LOCKS: usize = 256;
/// How long the store takes for a few of them: the most that a request may take.
const SLOW: Duration = Duration::from_secs(2);

/// Renewals for which the store is slow must not cost the other holders their locks.
#[tokio::test(start_paused = true)]
async fn a_few_slow_renewals_cost_the_others_nothing() {
    bounded(async {
        let fixture = Fixture::new();
        let ylock = client(&fixture.fake, &fixture.world);
        let locks = ylock.locks("users");
        let guards = join_all((0..LOCKS).map(|number| locks.write(format!("name-{number}")))).await;
        let guards: Vec<_> = guards.into_iter().map(Result::unwrap).collect();
        let seen = Arc::new(Mutex::new(BTreeSet::new()));
        fixture.fake.plan(move |_, write| {
            let mut seen = seen.lock();
            let number = seen.len();
            let is_new = seen.insert(write.row.acquisition);
            // One in fifty, in whichever order they are renewed.
            let is_slow = is_new && write.row.state == State::Held && number % 50 == 0;
            if is_slow { Fate::IsHeardAfter(SLOW) } else { Fate::Arrives }
        });
        let began = fixture.world.now();
        tokio::time::sleep(LEASE * 2).await;
        let lost = guards.iter().filter(|guard| !guard.is_valid()).count();
        assert_eq!(lost, 0, "of {LOCKS}, after {:?}", fixture.world.now().since(began));
    })
    .await;
}

async fn is_renewed(engine: &CassandraEngine, grant: &Grant) -> bool {
    let renewed = engine.renew(&[Holding::new(grant.clone(), None)]).await.remove(0).unwrap();
    matches!(renewed, Renewal::Renewed { .. })
}

/// The other one's token is later than this reader's. Only a writer's would say that the lock was lost.
#[tokio::test(start_paused = true)]
async fn a_reader_is_renewed_beside_later_readers_and_when_they_have_left() {
    bounded(async {
        let fixture = Fixture::new();
        let ((one, first), (other, second)) = (fixture.contestant(), fixture.contestant());
        let (first, second) = (first.with_mode(Mode::Read), second.with_mode(Mode::Read));
        let grant = one.acquire(&first).await.unwrap().unwrap();
        let later = other.acquire(&second).await.unwrap().unwrap();
        assert!(later.token > grant.token);
        // From here on the other one's row says that it is inside.
        assert!(is_renewed(&other, &later).await && is_renewed(&one, &grant).await);
        assert_eq!(other.release(&fixture.key, second.id, None).await.unwrap(), Release::Released);
        assert!(fixture.fake.seen(&fixture.key).last_read > grant.token);
        assert!(is_renewed(&one, &grant).await);
        assert_eq!(one.release(&fixture.key, first.id, None).await.unwrap(), Release::Released);
    })
    .await;
}
