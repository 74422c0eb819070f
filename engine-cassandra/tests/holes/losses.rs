//! Holders that lose what they hold.

use std::sync::atomic::Ordering;
use std::time::Duration;

use ylock_core::engine::{Engine, Holding, Release, Renewal};
use ylock_core::environment::Environment;
use ylock_core::{LossReason, Unlocked};
use ylock_engine_cassandra::algorithm::store::State;

use crate::fake::{Fate, LEASE, client};
use crate::fixture::{Fixture, bounded};

/// Hole 13: a holder that could not renew in time is told, and does not write itself back.
#[tokio::test(start_paused = true)]
async fn a_holder_without_renewals_is_lost_before_its_row_is() {
    bounded(async {
        let fixture = Fixture::new();
        let guard = fixture.locks().write("alice").await.unwrap();
        fixture
            .fake
            .plan(|_, write| if write.row.state == State::Held { Fate::IsLate } else { Fate::Arrives });
        assert_eq!(guard.lost().await, LossReason::Lapsed);
        assert!(!guard.is_valid());
        let other = fixture.locks().write("alice").await.unwrap();
        assert!(fixture.fake.deliver() > 0);
        assert!(!fixture.states().contains(&State::Held) || other.is_valid());
        assert_eq!(guard.unlock().await.unwrap(), Unlocked::WasLost);
        assert!(other.is_valid());
    })
    .await;
}

/// Hole 21 and the release that names the key only: an old guard's release does not touch the new grant.
#[tokio::test(start_paused = true)]
async fn the_release_of_a_lost_lock_leaves_the_next_one_alone() {
    bounded(async {
        let fixture = Fixture::new();
        let ylock = client(&fixture.fake, &fixture.world);
        let locks = ylock.locks("users");
        let old = locks.write("alice").await.unwrap();
        assert_eq!(ylock.revoke("users", "alice").await.unwrap(), 1);
        assert_eq!(old.lost().await, LossReason::Revoked);
        let new = locks.write("alice").await.unwrap();
        assert!(new.token() > old.token());
        assert_eq!(old.unlock().await.unwrap(), Unlocked::WasLost);
        assert!(new.is_valid());
        assert!(fixture.locks().write("alice").now().await.unwrap().is_none());
    })
    .await;
}

/// Hole 13, the other half: a renewal that was sent in time and heard too late. The row may have been gone in between, and another
/// client inside.
#[tokio::test(start_paused = true)]
async fn a_renewal_that_is_heard_too_late_is_a_loss() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request) = fixture.contestant();
        let grant = engine.acquire(&request).await.unwrap().unwrap();
        fixture.fake.plan(|_, write| match write.row.state {
            State::Held => Fate::IsHeardAfter(LEASE),
            _ => Fate::Arrives,
        });
        let renewed = engine.renew(&[Holding::new(grant, None)]).await.remove(0).unwrap();
        assert!(matches!(renewed, Renewal::Lost(LossReason::Lapsed)), "{renewed:?}");
        engine.release(&fixture.key, request.id, None).await.unwrap();
        assert_eq!(fixture.states(), [State::Idle], "it does not stand in the way");
    })
    .await;
}

/// A holder that loses its lock is told before another client can get in: a renewal that finds out writes nothing.
#[tokio::test(start_paused = true)]
async fn a_lost_lock_is_not_given_away_before_its_holder_knows() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request) = fixture.contestant();
        let grant = engine.acquire(&request).await.unwrap().unwrap();
        assert!(engine.revoke(&fixture.key, request.id).await.unwrap());
        let renewed = engine.renew(&[Holding::new(grant, None)]).await.remove(0).unwrap();
        assert!(matches!(renewed, Renewal::Lost(LossReason::Revoked)), "{renewed:?}");
        assert_eq!(fixture.states(), [State::Claimed]);
    })
    .await;
}

/// A holder whose renewals come late looks late as well. Until then the revocation must be there, or it is never heard.
#[tokio::test(start_paused = true)]
async fn a_revocation_is_there_until_the_latest_renewal_of_its_holder() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request) = fixture.contestant();
        let grant = engine.acquire(&request).await.unwrap().unwrap();
        assert!(engine.revoke(&fixture.key, request.id).await.unwrap());
        fixture.world.sleep(LEASE * 3 / 4).await;
        let renewed = engine.renew(&[Holding::new(grant, None)]).await.remove(0).unwrap();
        assert!(matches!(renewed, Renewal::Lost(LossReason::Revoked)), "{renewed:?}");
    })
    .await;
}

/// Its row is gone by the clock of a server that is too far ahead: another client may have come, and may have left already.
#[tokio::test(start_paused = true)]
async fn a_holder_whose_row_is_gone_has_lost_and_does_not_write_itself_back() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request) = fixture.contestant();
        let grant = engine.acquire(&request).await.unwrap().unwrap();
        fixture.fake.expire(&fixture.key);
        let renewed = engine.renew(&[Holding::new(grant, None)]).await.remove(0).unwrap();
        assert_eq!(renewed, Renewal::Lost(LossReason::Gone));
        assert_eq!(fixture.states(), []);
    })
    .await;
}

/// The row of the holder is gone, and a renewal that was late has brought it back beside another client's row.
#[tokio::test(start_paused = true)]
async fn a_holder_that_sees_a_later_one_inside_has_lost() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request) = fixture.contestant();
        let grant = engine.acquire(&request).await.unwrap().unwrap();
        fixture.fake.plan(|_, _| Fate::IsLate);
        engine.renew(&[Holding::new(grant.clone(), None)]).await.remove(0).unwrap_err();
        fixture.fake.expire(&fixture.key);
        fixture.fake.plan(|_, _| Fate::Arrives);
        let (other, request) = fixture.contestant();
        let later = other.acquire(&request).await.unwrap().unwrap();
        other.renew(&[Holding::new(later.clone(), None)]).await.remove(0).unwrap();
        assert_eq!(fixture.fake.deliver(), 1);
        assert_eq!(fixture.states(), [State::Held, State::Held]);
        let renewed = engine.renew(&[Holding::new(grant, None)]).await.remove(0).unwrap();
        assert_eq!(renewed, Renewal::Lost(LossReason::Gone));
        let renewed = other.renew(&[Holding::new(later, None)]).await.remove(0).unwrap();
        assert!(matches!(renewed, Renewal::Renewed { .. }), "the later one holds on: {renewed:?}");
    })
    .await;
}

/// The servers count from when they get a write, so the holder counts from before it sends the write.
#[tokio::test(start_paused = true)]
async fn a_lease_counts_from_before_its_write_was_sent() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request) = fixture.contestant();
        fixture.fake.plan(|_, _| Fate::IsHeardAfter(LEASE / 4));
        let began = fixture.world.now();
        let grant = engine.acquire(&request).await.unwrap().unwrap();
        assert!(grant.sent.since(began) < LEASE / 10, "granted after {:?}", grant.sent.since(began));
        let began = fixture.world.now();
        match engine.renew(&[Holding::new(grant, None)]).await.remove(0).unwrap() {
            Renewal::Renewed { sent, .. } => assert!(sent.since(began) < LEASE / 10),
            other => panic!("{other:?}"),
        }
    })
    .await;
}

/// A renewal and a release may overlap, and the release wins.
#[tokio::test(start_paused = true)]
async fn a_renewal_does_not_bring_back_what_a_release_has_ended() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request) = fixture.contestant();
        let grant = engine.acquire(&request).await.unwrap().unwrap();
        fixture.fake.slow_read(LEASE / 10);
        let holdings = [Holding::new(grant, None)];
        let renewing = async {
            // The release happens while the renewal looks, and the look shows what was there before.
            engine.renew(&holdings).await.remove(0).unwrap()
        };
        let releasing = async {
            tokio::time::sleep(LEASE / 10 - Duration::from_millis(2)).await;
            engine.release(&fixture.key, request.id, None).await.unwrap()
        };
        let (renewed, released) = tokio::join!(renewing, releasing);
        assert_eq!((renewed, released), (Renewal::Lost(LossReason::Gone), Release::Released));
        assert_eq!(fixture.states(), [State::Idle]);
    })
    .await;
}

/// The place behind a grant that has lapsed went with it: giving that place up must not bring the holder's row back beside another
/// client's.
#[tokio::test(start_paused = true)]
async fn a_place_behind_a_lapsed_grant_is_given_up_without_a_write() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request) = fixture.contestant();
        let grant = engine.acquire(&request).await.unwrap().unwrap();
        let next = fixture.again(&request);
        let holdings = [Holding::new(grant, next.clone())];
        assert!(matches!(engine.renew(&holdings).await[0], Ok(Renewal::Renewed { .. })));
        tokio::time::sleep(LEASE * 2).await;
        let (other, theirs) = fixture.contestant();
        other.acquire(&theirs).await.unwrap().unwrap();
        assert_eq!(engine.release(&fixture.key, next.id, None).await.unwrap(), Release::WasGone);
        let [row] = &fixture.rows()[..] else { panic!("not one row: {:?}", fixture.rows()) };
        assert_eq!(row.acquisition, theirs.id);
    })
    .await;
}

/// The renewal has arrived and was heard, but too late to count: the holder has lost, although its row is as good as new.
#[tokio::test(start_paused = true)]
async fn a_place_behind_a_grant_that_was_renewed_too_late_is_given_up_without_a_write() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request) = fixture.contestant();
        let grant = engine.acquire(&request).await.unwrap().unwrap();
        let next = fixture.again(&request);
        // Sent at 0.8 leases and heard at 1.0: by itself it would be valid until 1.7, so at 1.1 only the lapse speaks against it.
        tokio::time::sleep(LEASE * 8 / 10).await;
        fixture.fake.plan(|_, _| Fate::IsHeardAfter(LEASE * 2 / 10));
        let renewed = engine.renew(&[Holding::new(grant, next.clone())]).await.remove(0).unwrap();
        assert_eq!(renewed, Renewal::Lost(LossReason::Lapsed));
        fixture.fake.plan(|_, _| Fate::Arrives);
        let (late, again) = (fixture.again(&request), LEASE / 10);
        tokio::time::sleep(again).await;
        let writes = fixture.fake.writes.load(Ordering::Relaxed);
        assert_eq!(engine.release(&fixture.key, next.id, None).await.unwrap(), Release::WasGone);
        assert_eq!(fixture.fake.writes.load(Ordering::Relaxed), writes);
        // A grant that follows is a new one.
        assert_eq!(engine.release(&fixture.key, request.id, None).await.unwrap(), Release::Released);
        let grant = engine.acquire(&late).await.unwrap().unwrap();
        let next = fixture.again(&late);
        assert!(matches!(
            engine.renew(&[Holding::new(grant, next.clone())]).await[0],
            Ok(Renewal::Renewed { .. })
        ));
        assert_eq!(engine.release(&fixture.key, next.id, None).await.unwrap(), Release::Released);
    })
    .await;
}

/// The holder's row is still there, but a write that is sent now could arrive when the row is not.
#[tokio::test(start_paused = true)]
async fn a_renewal_that_begins_too_late_is_a_loss_and_writes_nothing() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request) = fixture.contestant();
        let grant = engine.acquire(&request).await.unwrap().unwrap();
        let writes = fixture.fake.writes.load(Ordering::Relaxed);
        tokio::time::sleep(LEASE).await;
        assert_eq!(fixture.states(), [State::Claimed]);
        let answer = engine.renew(&[Holding::new(grant, None)]).await.remove(0).unwrap();
        assert_eq!(answer, Renewal::Lost(LossReason::Lapsed));
        assert_eq!(fixture.fake.writes.load(Ordering::Relaxed), writes);
    })
    .await;
}
