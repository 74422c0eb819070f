//! The lease: renewed as long as it is held, over when it is not.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use ylock_core::{LossReason, Mode, Options, Owner, Unlocked};

use crate::{
    Call, Contender, CountsCalls, Faulty, Fixture, Outage, eventually, quiet_time, undisturbed, within,
};

/// A lock is held for five leases and longer, and no other contender gets in.
pub async fn a_lock_is_renewed_past_five_leases(fixture: Fixture) {
    undisturbed(fixture.lease(), || async {
        let (here, there) = (fixture.short_lived().await, fixture.client().await);
        let guard = here.write().await;
        let waiting = there.queue_up(Mode::Write).await;
        let start = Instant::now();
        while start.elapsed() < fixture.lease() * 5 {
            fixture.leases(0.2).await;
            if let Some(loss) = guard.loss() {
                return Err(format!("lost after {:?}: {loss:?}", start.elapsed()));
            }
            assert!(!waiting.is_done(), "another contender got in after {:?}", start.elapsed());
        }
        let unlocked = guard.unlock().await.unwrap();
        drop(waiting.guard().await);
        if unlocked == Unlocked::Released { Ok(()) } else { Err(format!("{unlocked:?}")) }
    })
    .await;
}

/// Read locks are renewed as well, each client its own.
pub async fn read_locks_are_renewed(fixture: Fixture) {
    let (here, there, writer) =
        (fixture.short_lived().await, fixture.short_lived().await, fixture.client().await);
    let (first, second) = (here.read().await, there.read().await);
    let waiting = writer.queue_up(Mode::Write).await;
    fixture.leases(3.0).await;
    assert!(first.is_valid() && second.is_valid() && !waiting.is_done());
    assert_eq!(first.unlock().await.unwrap(), Unlocked::Released);
    fixture.leases(2.0).await;
    assert!(second.is_valid() && !waiting.is_done(), "one reader is left");
    assert_eq!(second.unlock().await.unwrap(), Unlocked::Released);
    drop(waiting.guard().await);
}

/// A downgraded lock is renewed as well.
pub async fn a_downgraded_lock_is_renewed(fixture: Fixture) {
    let (here, there) = (fixture.short_lived().await, fixture.client().await);
    let guard = here.write().await.downgrade().await.unwrap();
    let waiting = there.queue_up(Mode::Write).await;
    fixture.leases(3.0).await;
    assert!(guard.is_valid() && !waiting.is_done());
    drop(guard);
    drop(waiting.guard().await);
}

/// After a lock was given back nothing is renewed, and nothing else is sent.
pub async fn nothing_is_sent_after_a_release(fixture: Fixture) {
    let counts = Arc::new(CountsCalls::default());
    let client = fixture.client_over(fixture.short_options(), |engine| Faulty::over(engine, &counts)).await;
    let guard = client.write().await;
    let renewed = || async { counts.of(Call::Renew) > 0 };
    eventually(fixture.lapse(), "it is renewed", renewed).await;
    assert_eq!(guard.unlock().await.unwrap(), Unlocked::Released);
    let sent = counts.all();
    fixture.leases(2.0).await;
    assert_eq!(counts.all(), sent, "calls after the release");
}

/// If renewals fail, the holder knows that it has lost the lock before another holder can have it.
pub async fn a_holder_knows_of_its_loss_before_anybody_gets_in(fixture: Fixture) {
    for mode in [Mode::Write, Mode::Read] {
        let outage = Arc::new(Outage::of(&[Call::Renew]));
        let here = fixture.client_over(fixture.short_options(), |engine| Faulty::over(engine, &outage)).await;
        let there = fixture.client().await;
        let guard = here.acquire(mode).await;
        let lease = guard.lease();
        let told = tokio::spawn(async move { (lease.lost().await, quiet_time()) });
        let other = within(fixture.lapse(), "another holder gets in", there.lock.write()).await.unwrap();
        let entered = quiet_time();
        assert!(!guard.is_valid(), "two hold it");
        let (reason, told) = within(fixture.soon(), "the holder is told", told).await.unwrap();
        assert_eq!(reason, LossReason::Lapsed);
        // On a busy machine the two tasks may run in either order, but not far apart.
        assert!(
            told < entered + (fixture.lease() / 2).min(Duration::from_millis(250)),
            "told {:?} after another got in",
            told.saturating_sub(entered)
        );
        assert_eq!(guard.unlock().await.unwrap(), Unlocked::WasLost);
        assert!(
            other.is_valid() && there.look().await.holders.len() == 1,
            "a late release removes no other holder"
        );
    }
}

/// Without any word from the store a lock is over in time, by our own clock.
pub async fn a_lock_is_over_without_any_word_from_the_store(fixture: Fixture) {
    let client = fixture.short_lived().await;
    let start = quiet_time();
    let guard = client.write().await;
    client.process().pause();
    let reason = within(fixture.lease() * 2, "`lost` fires", guard.lost()).await;
    assert_eq!(reason, LossReason::Lapsed);
    let took = quiet_time() - start;
    assert!(took < fixture.lapse(), "it took {took:?}");
    assert!(!guard.is_valid() && guard.remaining().is_zero());
    assert!(guard.check().is_err());
    client.process().resume();
    fixture.leases(1.0).await;
    assert!(!guard.is_valid(), "what is over never comes back");
    drop(guard);
}

/// A holder that slept past its lease does not disturb the present holder, whatever it does.
pub async fn a_holder_that_overslept_disturbs_nobody(fixture: Fixture) {
    for mode in [Mode::Write, Mode::Read] {
        let (here, there) = (fixture.short_lived().await, fixture.client().await);
        let old = here.acquire(mode).await;
        let again = here.lock.owned_by(&old.owner());
        here.process().pause();
        let new = within(fixture.lapse(), "the other gets in", there.lock.write()).await.unwrap();
        here.process().resume();
        fixture.leases(0.5).await;
        assert!(!old.is_valid() && new.is_valid());
        assert!(
            again.write().now().await.unwrap().is_none(),
            "the count of entries does not survive the loss"
        );
        assert_eq!(old.unlock().await.unwrap(), Unlocked::WasLost);
        fixture.work().await;
        let seen = there.look().await;
        assert_eq!(seen.holders.len(), 1, "{seen:?}");
        assert_eq!((seen.holders[0].owner, new.is_valid()), (new.owner(), true));
        assert!(fixture.client().await.try_acquire(Mode::Read).await.is_none());
        drop(new);
        drop(here.write().await);
    }
}

/// A waiter of the same client as a lock that lapsed gets in when the store lets it, and not before.
pub async fn local_waiters_survive_the_loss_of_the_lock_before_them(fixture: Fixture) {
    let outage = Arc::new(Outage::of(&[Call::Renew]));
    let client = fixture.client_over(fixture.short_options(), |engine| Faulty::over(engine, &outage)).await;
    let guard = client.write().await;
    let waiting = Contender::start_as(&client, Mode::Write, Owner::new());
    waiting.seen_by(&client).await;
    let next = within(fixture.lapse(), "the next holder gets in", waiting.outcome()).await.unwrap();
    assert!(!guard.is_valid() && next.is_valid());
    assert!(next.token() > guard.token() || guard.token().is_none());
    outage.end();
    assert_eq!(guard.unlock().await.unwrap(), Unlocked::WasLost);
    assert!(next.is_valid());
    assert_eq!(next.unlock().await.unwrap(), Unlocked::Released);
}

/// A lock with a short lease that is held, and waited for, for a long time stays what it is.
pub async fn a_lock_is_held_for_longer_than_a_minute(fixture: Fixture) {
    // A waiter that a busy machine does not renew for the shortest lease would have to queue again.
    let lease = fixture.lease() * 4;
    let options = Options::default().with_lease(lease);
    let client = async || fixture.client_with(options.clone()).await;
    let (here, there, other) = (client().await, client().await, client().await);
    let guard = here.write().await;
    let (locks, group) = (here.locks(fixture.group()), fixture.group());
    let shared = locks.read("shared").await.unwrap();
    let waiting = there.queue_up(Mode::Write).await;
    // For two leases at least: without renewals it would end.
    tokio::time::sleep(fixture.harness().long_hold().max(lease * 2)).await;
    assert!(guard.is_valid() && shared.is_valid(), "{:?}, {:?}", guard.loss(), shared.loss());
    assert!(!waiting.is_done() && other.try_acquire(Mode::Read).await.is_none());
    assert!(other.lock(group, "shared").write().now().await.unwrap().is_none());
    let seen = other.look().await;
    assert_eq!((seen.holders.len(), seen.queue.len()), (1, 1), "{seen:?}");
    let before = guard.token();
    assert_eq!(guard.unlock().await.unwrap(), Unlocked::Released);
    let next = waiting.guard().await;
    assert!(next.token() > before || before.is_none());
    assert_eq!(shared.unlock().await.unwrap(), Unlocked::Released);
}

/// A hold that lasts for longer than it may is lost, and another client gets the lock, long before
/// a lease is over, although the guard is still there.
pub async fn a_hold_that_lasts_too_long_ends_and_the_next_gets_in(fixture: Fixture) {
    let longest = Duration::from_millis(200);
    let bounded = Options::default().with_lease(fixture.long_lease()).with_max_hold(longest);
    for mode in [Mode::Write, Mode::Read] {
        let (here, there) = (fixture.client_with(bounded.clone()).await, fixture.client().await);
        let guard = here.acquire(mode).await;
        let lease = guard.lease();
        let told = tokio::spawn(async move { lease.lost().await });
        let next =
            within(longest + fixture.soon(), "another holder gets in", there.lock.write()).await.unwrap();
        assert!(!guard.is_valid(), "two hold it");
        assert_eq!(
            within(fixture.soon(), "the holder is told", told).await.unwrap(),
            LossReason::HeldTooLong
        );
        assert_eq!(guard.loss(), Some(LossReason::HeldTooLong));
        assert!(next.token() > guard.token() || guard.token().is_none());
        assert_eq!(guard.unlock().await.unwrap(), Unlocked::WasLost);
        fixture.work().await;
        assert!(
            next.is_valid() && there.look().await.holders.len() == 1,
            "the guard of the former holder gives nothing back"
        );
    }
}
