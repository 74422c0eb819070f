//! Renewals: of many grants together, of readers side by side, and in the last moment.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use parking_lot::Mutex;
use ylock_core::Mode;
use ylock_core::engine::{Engine, Grant, Holding, LossReason, Release, Renewal, valid_until};
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

async fn renew(engine: &CassandraEngine, grant: &Grant) -> Renewal {
    engine.renew(&[Holding::new(grant.clone(), None)]).await.remove(0).unwrap()
}

/// A reader that came later has a larger token, while it is inside and when it has left: that says nothing of those that read beside it.
#[tokio::test(start_paused = true)]
async fn readers_that_come_later_and_leave_cost_a_reader_nothing() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request) = fixture.contestant();
        let grant = engine.acquire(&request.with_mode(Mode::Read)).await.unwrap().unwrap();
        let (other, theirs) = fixture.contestant();
        let later = other.acquire(&theirs.clone().with_mode(Mode::Read)).await.unwrap().unwrap();
        assert!(matches!(renew(&other, &later).await, Renewal::Renewed { .. }));
        assert!(later.token > grant.token && fixture.states().contains(&State::Held));
        let renewed = renew(&engine, &grant).await;
        assert!(matches!(renewed, Renewal::Renewed { .. }), "beside another reader: {renewed:?}");
        assert_eq!(other.release(&fixture.key, theirs.id, None).await.unwrap(), Release::Released);
        assert_eq!(fixture.fake.seen(&fixture.key).last_read, later.token);
        let renewed = renew(&engine, &grant).await;
        assert!(matches!(renewed, Renewal::Renewed { .. }), "after another reader: {renewed:?}");
    })
    .await;
}

/// The moment at which the validity ends is over for the holder: what it has lost it does not write again, whatever is given up behind it.
#[tokio::test(start_paused = true)]
async fn a_renewal_that_is_heard_in_the_moment_its_validity_ends_counts_for_nothing() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request) = fixture.contestant();
        let grant = engine.acquire(&request).await.unwrap().unwrap();
        let (next, until) = (fixture.again(&request), valid_until(grant.sent, LEASE));
        let heard_after = LEASE / 10;
        fixture.fake.plan(move |_, _| Fate::IsHeardAfter(heard_after));
        // A look and a write take a millisecond each.
        let takes = heard_after + Duration::from_millis(2);
        tokio::time::sleep(until.since(fixture.world.now()) - takes).await;
        let renewed = engine.renew(&[Holding::new(grant, next.clone())]).await.remove(0).unwrap();
        assert_eq!((fixture.world.now(), renewed), (until, Renewal::Lost(LossReason::Lapsed)));
        assert_eq!(engine.release(&fixture.key, next.id, None).await.unwrap(), Release::WasGone);
    })
    .await;
}
