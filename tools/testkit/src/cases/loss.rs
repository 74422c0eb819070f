//! A lock that is taken away.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use futures_util::future::join_all;
use tokio::task::JoinHandle;
use ylock_core::{ErrorKind, LossReason, Mode, Owner, Unlocked};

use crate::{Client, Contender, Fixture, eventually, within};

/// Every caller that asks is told of the loss, once and for all, with the same reason.
pub async fn a_revoked_holder_is_told(fixture: Fixture) {
    let (here, there) = (fixture.short_lived().await, fixture.client().await);
    let guard = here.write().await;
    let told: Vec<_> = (0..3)
        .map(|_| {
            let lease = guard.lease();
            tokio::spawn(async move { lease.lost().await })
        })
        .collect();
    assert_eq!(there.take_away().await, 1);
    for told in within(fixture.lapse(), "all are told", join_all(told)).await {
        assert_eq!(told.unwrap(), LossReason::Revoked);
    }
    assert_eq!(guard.loss(), Some(LossReason::Revoked));
    assert_eq!(within(fixture.soon(), "again", guard.lost()).await, LossReason::Revoked);
    assert!(!guard.is_valid() && guard.remaining().is_zero());
    fixture.leases(1.0).await;
    assert!(!guard.is_valid(), "it never becomes valid again");
    assert_eq!(guard.check().unwrap_err().kind(), ErrorKind::Lost);
    assert_eq!(guard.unlock().await.unwrap(), Unlocked::WasLost);
}

/// After a revocation the next waiter gets in, and the old guard cannot touch its lock.
pub async fn a_revoked_lock_goes_to_the_next(fixture: Fixture) {
    let (here, there) = (fixture.short_lived().await, fixture.client().await);
    let guard = here.write().await;
    let waiting = there.queue_up(Mode::Write).await;
    assert_eq!(there.take_away().await, 1);
    let next = within(fixture.lapse(), "the next waiter gets in", waiting.outcome()).await.unwrap();
    assert!(!guard.is_valid(), "two hold it");
    drop(guard);
    fixture.work().await;
    assert!(next.is_valid() && there.look().await.holders.len() == 1);
    assert!(
        here.try_acquire(Mode::Write).await.is_none(),
        "the release of a lost lock released that of another holder"
    );
}

/// An owner that lost a lock competes like any other, gets a new one, and its old guard cannot touch that.
pub async fn who_lost_a_lock_competes_afresh(fixture: Fixture) {
    let (here, there) = (fixture.short_lived().await, fixture.client().await);
    let (old, inner) = Owner::new().scope(async { (here.write().await, here.write().await) }).await;
    let again = here.lock.owned_by(&old.owner());
    here.take_away().await;
    within(fixture.lapse(), "it is told", old.lost()).await;
    assert!(!inner.is_valid(), "both guards of the owner are lost");
    let new = within(fixture.lapse(), "it gets in again", again.write()).await.unwrap();
    assert!(new.is_valid() && !old.is_valid() && !inner.is_valid());
    if fixture.harness().guarantees().fencing {
        assert!(new.token() > old.token(), "a new lock has a new token");
    }
    assert_eq!(old.unlock().await.unwrap(), Unlocked::WasLost);
    assert_eq!(inner.unlock().await.unwrap(), Unlocked::WasLost);
    fixture.work().await;
    assert!(new.is_valid() && there.try_acquire(Mode::Write).await.is_none());
    assert_eq!(new.unlock().await.unwrap(), Unlocked::Released);
    drop(there.write().await);
}

/// A revocation takes the lock from all readers, of all clients.
pub async fn a_revocation_takes_the_lock_from_all_readers(fixture: Fixture) {
    let (here, there) = (fixture.short_lived().await, fixture.short_lived().await);
    let (first, second) = (here.read().await, there.read().await);
    assert_eq!(here.take_away().await, 2);
    for guard in [first, second] {
        assert_eq!(within(fixture.lapse(), "it is told", guard.lost()).await, LossReason::Revoked);
        assert_eq!(guard.unlock().await.unwrap(), Unlocked::WasLost);
    }
    drop(within(fixture.lapse(), "it is free", here.lock.write()).await.unwrap());
}

/// Nothing to take away: the answer is zero, and later holders are not affected.
pub async fn a_revocation_of_a_free_lock_does_nothing(fixture: Fixture) {
    let client = fixture.client().await;
    assert_eq!(client.take_away().await, 0);
    let guard = client.write().await;
    fixture.work().await;
    assert!(guard.is_valid());
    assert_eq!(guard.unlock().await.unwrap(), Unlocked::Released);
    assert_eq!(client.take_away().await, 0);
}

/// A downgrade of a lock that was lost says so.
pub async fn a_lost_lock_cannot_be_downgraded(fixture: Fixture) {
    let client = fixture.short_lived().await;
    let guard = client.write().await;
    client.take_away().await;
    within(fixture.lapse(), "it is told", guard.lost()).await;
    assert_eq!(guard.downgrade().await.unwrap_err().kind(), ErrorKind::Lost);
    drop(within(fixture.lapse(), "it is free", client.lock.write()).await.unwrap());
}

/// A lock that was given back is not lost, also if the next holder of the same client loses it.
pub async fn a_lock_that_was_given_back_is_not_lost(fixture: Fixture) {
    let here = fixture.short_lived().await;
    let guard = here.write().await;
    let (before, after) = (guard.lease(), guard.lease());
    let fired = tokio::spawn(async move { before.lost().await });
    let waiting = here.queue_up(Mode::Write).await;
    assert_eq!(guard.unlock().await.unwrap(), Unlocked::Released);
    let next = waiting.guard().await;
    here.take_away().await;
    within(fixture.lapse(), "the next holder is told", next.lost()).await;
    fixture.work().await;
    assert!(!fired.is_finished() && after.loss().is_none(), "a lock that was given back was called lost");
    fired.abort();
}

/// `run` stops the work when the lock is lost, and says so.
pub async fn run_stops_the_work_when_the_lock_is_lost(fixture: Fixture) {
    struct Stopped(Arc<AtomicBool>);
    impl Drop for Stopped {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let (here, there) = (fixture.short_lived().await, fixture.client().await);
    let (stopped, lock) = (Arc::new(AtomicBool::new(false)), here.lock.clone());
    let (working, began) = (Stopped(Arc::clone(&stopped)), Arc::new(AtomicBool::new(false)));
    let begins = Arc::clone(&began);
    let run = tokio::spawn(async move {
        lock.write()
            .run(|_| async move {
                let _working = working;
                begins.store(true, Ordering::SeqCst);
                pending::<()>().await;
            })
            .await
    });
    eventually(fixture.soon(), "the work has begun", || async { began.load(Ordering::SeqCst) }).await;
    let waiting = Contender::start(&there, Mode::Write);
    there.take_away().await;
    let error = within(fixture.lapse(), "the work is stopped", run).await.unwrap().unwrap_err();
    assert_eq!((error.kind(), error.key()), (ErrorKind::Lost, Some(&here.key())));
    assert!(stopped.load(Ordering::SeqCst), "the work's future was dropped");
    drop(waiting.outcome().await.unwrap());
}

/// Waiters are not hit by the revocations of holders before them, also at the moment at which they get in.
pub async fn a_revocation_hits_no_waiter(fixture: Fixture) {
    let clients = fixture.clients(3).await;
    let (turns, work) = (Arc::new(AtomicUsize::new(0)), fixture.harness().trip() / 8);
    let visits = |client: &Client, number: usize| {
        let (lock, turns) = (client.lock.clone(), Arc::clone(&turns));
        tokio::spawn(async move {
            for _ in 0..10 {
                let guard = if number.is_multiple_of(3) { lock.read().await } else { lock.write().await };
                let guard = guard.unwrap_or_else(|error| panic!("a waiter was told: {error}"));
                // Long enough for a revocation to find it inside.
                drop(tokio::time::timeout(work, guard.lost()).await);
                drop(guard);
                turns.fetch_add(1, Ordering::Relaxed);
            }
        })
    };
    let tasks: Vec<_> = (0..6).map(|number| visits(&clients[number % 2], number)).collect();
    let all_done = || tasks.iter().all(JoinHandle::is_finished);
    fixture
        .to_its_end("all have had their turns", async {
            while !all_done() {
                clients[2].take_away().await;
                tokio::task::yield_now().await;
            }
        })
        .await;
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(turns.load(Ordering::Relaxed), 60);
}
