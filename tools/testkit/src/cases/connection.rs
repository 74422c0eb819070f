//! Answers that get lost, and the end of a client.

use std::sync::Arc;

use tokio::time::timeout;
use ylock_core::{ErrorKind, LossReason, Mode, Options, Unlocked};

use crate::{Call, Client, Contender, Faulty, Fixture, LosesReplies, eventually, undisturbed, within};

async fn forgetful(fixture: &Fixture, faults: &Arc<LosesReplies>) -> Client {
    let options = Options::default().with_lease(fixture.long_lease());
    fixture.client_over(options, |engine| Faulty::over(engine, faults)).await
}

/// A grant whose answer got lost is not left in the store: it would stay there for a long lease.
pub async fn a_lost_answer_to_an_acquisition_leaves_no_orphan(fixture: Fixture) {
    let faults = Arc::new(LosesReplies::of(Call::Acquire, 1));
    let (here, there) = (forgetful(&fixture, &faults).await, fixture.client().await);
    match within(fixture.soon(), "there is an answer", here.lock.write()).await {
        Ok(guard) => assert!(guard.is_valid()),
        Err(error) => assert_eq!(error.kind(), ErrorKind::Indeterminate, "{error}"),
    }
    assert_eq!(faults.left(), 0);
    drop(there.write().await);
    drop(here.write().await);
}

/// A grant whose answer never comes is not left in the store when its caller stops waiting.
pub async fn an_acquisition_that_hangs_leaves_no_orphan(fixture: Fixture) {
    let faults = Arc::new(LosesReplies::hanging(Call::Acquire, 1));
    let (here, there) = (forgetful(&fixture, &faults).await, fixture.client().await);
    let waiting = Contender::start(&here, Mode::Write);
    eventually(fixture.soon(), "the store has it", || async { there.look().await.holders.len() == 1 }).await;
    // The claim may be seen before the store's last answer, which then is still to get lost.
    eventually(fixture.soon(), "its answer hangs", || async { faults.left() == 0 }).await;
    assert!(!waiting.is_done());
    waiting.cancel().await;
    drop(there.write().await);
    drop(here.write().await);
}

/// A release whose answer got lost is repeated and does no harm.
pub async fn a_lost_answer_to_a_release_does_no_harm(fixture: Fixture) {
    let faults = Arc::new(LosesReplies::of(Call::Release, 2));
    let (here, there) = (forgetful(&fixture, &faults).await, fixture.client().await);
    let guard = here.write().await;
    let waiting = there.queue_up(Mode::Write).await;
    let unlocked = within(fixture.soon(), "it is given back", guard.unlock()).await;
    assert_eq!(unlocked.expect("repeated until it was confirmed"), Unlocked::Released);
    let next = waiting.guard().await;
    fixture.work().await;
    assert!(next.is_valid() && there.look().await.holders.len() == 1);
    assert!(here.try_acquire(Mode::Write).await.is_none());
}

/// A renewal whose answer got lost is repeated.
pub async fn a_lost_answer_to_a_renewal_does_no_harm(fixture: Fixture) {
    undisturbed(fixture.lease(), || async {
        let faults = Arc::new(LosesReplies::of(Call::Renew, 1));
        let here = fixture.client_over(fixture.short_options(), |engine| Faulty::over(engine, &faults)).await;
        let guard = here.write().await;
        eventually(fixture.lapse(), "the answer got lost", || async { faults.left() == 0 }).await;
        fixture.leases(2.0).await;
        let unlocked = guard.unlock().await.unwrap();
        if unlocked == Unlocked::Released { Ok(()) } else { Err(format!("{unlocked:?}")) }
    })
    .await;
}

/// Closing a client gives everything back at once, and is done when it returns.
pub async fn closing_gives_everything_back(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    let other_key = here.lock(fixture.group(), "another");
    let (write, read) = (here.write().await, other_key.read().await.unwrap());
    within(fixture.soon(), "close", here.close()).await;
    assert!(there.look().await.holders.is_empty(), "the store has it back when `close` returns");
    assert!(there.try_acquire(Mode::Write).await.is_some());
    for guard in [write, read] {
        assert!(!guard.is_valid());
        assert_eq!(within(fixture.soon(), "it is told", guard.lost()).await, LossReason::Closed);
        assert_eq!(guard.unlock().await.unwrap(), Unlocked::WasLost);
    }
    assert_eq!(here.keys_in_use(), 0);
    within(fixture.soon(), "closing twice is harmless", here.close()).await;
}

/// Nothing is acquired after a client was closed.
pub async fn a_closed_client_acquires_nothing(fixture: Fixture) {
    let client = fixture.client().await;
    within(fixture.soon(), "close", client.close()).await;
    let lock = &client.lock;
    let kinds = [
        lock.write().await.unwrap_err().kind(),
        lock.write().now().await.unwrap_err().kind(),
        lock.read().within(fixture.soon()).await.unwrap_err().kind(),
        lock.write().run(|_| async {}).await.unwrap_err().kind(),
    ];
    assert_eq!(kinds, [ErrorKind::Closed; 4]);
}

/// The waiters of a client that is closed are told, and leave the queue.
pub async fn closing_ends_every_wait(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    let guard = there.write().await;
    let waiting = [here.queue_up(Mode::Read).await, here.queue_up(Mode::Write).await];
    within(fixture.soon(), "close", here.close()).await;
    for waiting in waiting {
        assert_eq!(waiting.outcome().await.unwrap_err().kind(), ErrorKind::Closed);
    }
    assert!(there.look().await.queue.is_empty(), "nothing is left in the queue when `close` returns");
    assert!(guard.is_valid(), "other clients are not affected");
    drop(guard);
    drop(there.write().await);
}

/// Closing while tasks acquire and give back ends, and leaves nothing.
pub async fn closing_in_the_middle_of_work_leaves_nothing(fixture: Fixture) {
    let there = fixture.client().await;
    for _ in 0..10 {
        let here = fixture.client().await;
        let work = |number: usize| {
            let lock = here.lock(fixture.group(), format!("name {}", number % 2));
            tokio::spawn(async move { while lock.write().await.is_ok() {} })
        };
        let tasks: Vec<_> = (0..4).map(work).collect();
        eventually(fixture.soon(), "they work", || async { here.keys_in_use() > 1 }).await;
        within(fixture.soon(), "close", here.close()).await;
        for task in tasks {
            timeout(fixture.soon(), task).await.expect("it is told").unwrap();
        }
        for name in ["name 0", "name 1"] {
            assert!(there.lock(fixture.group(), name).write().now().await.unwrap().is_some());
        }
    }
}
