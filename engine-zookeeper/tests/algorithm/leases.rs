//! Leases of all lengths, against the session's time.

use std::time::Duration;

use ylock_core::Mode;
use ylock_core::engine::{Engine, Renewal, Request, valid_until};

use crate::fake::SESSION;
use crate::fixture::{Fixture, renew};

const SHORT: Duration = Duration::from_millis(1);

/// Renews every twelfth of the lease, as a keeper does, for so long. Returns the time for which the lock was held.
async fn held_for(
    fixture: &Fixture,
    engine: &ylock_engine_zookeeper::ZookeeperEngine,
    request: &Request,
    time: Duration,
) -> Duration {
    let mut grant = engine.acquire(request).await.unwrap().unwrap();
    let granted = fixture.now();
    while fixture.now() < granted.plus(time) {
        if fixture.now() >= valid_until(grant.sent, grant.lease) {
            return fixture.now().since(granted);
        }
        match renew(engine, &grant).await.unwrap() {
            Renewal::Renewed { sent, .. } => grant.sent = sent.max(grant.sent),
            _ => return fixture.now().since(granted),
        }
        tokio::time::sleep(request.lease / 12).await;
    }
    time
}

#[tokio::test(start_paused = true)]
async fn a_short_lease_that_is_granted_after_a_silence_lasts_until_it_can_be_renewed() {
    for silence in 30..60 {
        let fixture = Fixture::new();
        let lease = SESSION / 5;
        let here = fixture.client_with(&Fixture::short_leases(lease)).await.unwrap();
        let first = here.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
        here.release(&first.key, first.id, None).await.unwrap();
        tokio::time::sleep(SHORT).await;
        tokio::time::advance(SESSION * silence / 120).await;
        let request = fixture.request(Mode::Write).with_lease(lease);
        let held = held_for(&fixture, &here, &request, SESSION).await;
        assert_eq!(held, SESSION, "lost after {held:?}, after a silence of {silence}");
    }
}

/// Between two of its signs of life.
#[tokio::test(start_paused = true)]
async fn the_first_lock_of_a_client_that_was_not_used_for_long_counts_from_its_own_write_or_not_much_before()
{
    for (lease, behind) in [(SESSION * 5 / 6, SESSION / 10), (SESSION / 2, Duration::ZERO)] {
        for moment in 0..24 {
            let fixture = Fixture::new();
            let here = fixture.client_with(&Fixture::short_leases(lease)).await.unwrap();
            tokio::time::sleep(SESSION * 10 + SESSION * moment / 240).await;
            let asked = fixture.now();
            let grant = here.acquire(&fixture.request(Mode::Write).with_lease(lease)).await.unwrap().unwrap();
            assert!(grant.sent.plus(behind) >= asked, "{:?} before, at {moment}", asked.since(grant.sent));
        }
    }
}

/// A heartbeat serves renewals that come after it for longer than such a lease lasts.
#[tokio::test(start_paused = true)]
async fn a_lease_that_is_far_shorter_than_the_session_is_renewed() {
    for part in [15, 18, 24, 40] {
        let fixture = Fixture::new();
        let lease = SESSION / part;
        let here = fixture.client_with(&Fixture::short_leases(lease)).await.unwrap();
        let request = fixture.request(Mode::Write).with_lease(lease);
        let held = held_for(&fixture, &here, &request, SESSION).await;
        assert_eq!(held, SESSION, "a lease of {lease:?} is lost after {held:?}");
    }
}
