//! Answers that get lost, and the end of a client.

use std::sync::Arc;

use tokio::time::timeout;

use crate::engine::LossReason;
use crate::error::ErrorKind;
use crate::mode::Mode;
use crate::options::Options;
use crate::testkit::{Call, Client, Contender, Faulty, LosesReplies, Stage, eventually, within};
use crate::unlocked::Unlocked;

async fn forgetful(stage: &Stage, faults: &Arc<LosesReplies>) -> Client {
    let options = Options::default().with_lease(stage.long_lease());
    stage.client_over(options, |engine| Faulty::over(engine, faults)).await
}

/// A grant whose answer got lost is not left in the store: it would stay there for a long lease.
pub async fn a_lost_answer_to_an_acquisition_leaves_no_orphan(stage: Stage) {
    let faults = Arc::new(LosesReplies::of(Call::Acquire, 1));
    let (here, there) = (forgetful(&stage, &faults).await, stage.client().await);
    match within(stage.soon(), "there is an answer", here.lock.write()).await {
        Ok(guard) => assert!(guard.is_valid()),
        Err(error) => assert_eq!(error.kind(), ErrorKind::Indeterminate, "{error}"),
    }
    assert_eq!(faults.left(), 0);
    drop(there.write().await);
    drop(here.write().await);
}

/// A grant whose answer never comes is not left in the store when its caller stops waiting.
pub async fn an_acquisition_that_hangs_leaves_no_orphan(stage: Stage) {
    let faults = Arc::new(LosesReplies::hanging(Call::Acquire, 1));
    let (here, there) = (forgetful(&stage, &faults).await, stage.client().await);
    let waiting = Contender::start(&here, Mode::Write);
    eventually(stage.soon(), "the store has it", || async { there.look().await.holders.len() == 1 }).await;
    // The claim may be seen before the store's last answer, which then is still to get lost.
    eventually(stage.soon(), "its answer hangs", || async { faults.left() == 0 }).await;
    assert!(!waiting.is_done());
    waiting.cancel().await;
    drop(there.write().await);
    drop(here.write().await);
}

/// A release whose answer got lost is repeated and does no harm.
pub async fn a_lost_answer_to_a_release_does_no_harm(stage: Stage) {
    let faults = Arc::new(LosesReplies::of(Call::Release, 2));
    let (here, there) = (forgetful(&stage, &faults).await, stage.client().await);
    let guard = here.write().await;
    let waiting = there.queue_up(Mode::Write).await;
    let unlocked = within(stage.soon(), "it is given back", guard.unlock()).await;
    assert_eq!(unlocked.expect("repeated until it was confirmed"), Unlocked::Released);
    let next = waiting.guard().await;
    stage.work().await;
    assert!(next.is_valid() && there.look().await.holders.len() == 1);
    assert!(here.try_acquire(Mode::Write).await.is_none());
}

/// A renewal whose answer got lost is repeated.
pub async fn a_lost_answer_to_a_renewal_does_no_harm(stage: Stage) {
    let faults = Arc::new(LosesReplies::of(Call::Renew, 1));
    let here = stage.client_over(stage.short_options(), |engine| Faulty::over(engine, &faults)).await;
    let guard = here.write().await;
    eventually(stage.lapse(), "the answer got lost", || async { faults.left() == 0 }).await;
    stage.leases(2.0).await;
    assert_eq!(guard.unlock().await.unwrap(), Unlocked::Released);
}

/// Closing a client gives everything back at once, and is done when it returns.
pub async fn closing_gives_everything_back(stage: Stage) {
    let (here, there) = (stage.client().await, stage.client().await);
    let other_key = here.lock(stage.group(), "another");
    let (write, read) = (here.write().await, other_key.read().await.unwrap());
    within(stage.soon(), "close", here.close()).await;
    assert!(there.look().await.holders.is_empty(), "the store has it back when `close` returns");
    assert!(there.try_acquire(Mode::Write).await.is_some());
    for guard in [write, read] {
        assert!(!guard.is_valid());
        assert_eq!(within(stage.soon(), "it is told", guard.lost()).await, LossReason::Closed);
        assert_eq!(guard.unlock().await.unwrap(), Unlocked::WasLost);
    }
    assert_eq!(here.keys_in_use(), 0);
    within(stage.soon(), "closing twice is harmless", here.close()).await;
}

/// Nothing is acquired after a client was closed.
pub async fn a_closed_client_acquires_nothing(stage: Stage) {
    let client = stage.client().await;
    within(stage.soon(), "close", client.close()).await;
    let lock = &client.lock;
    let kinds = [
        lock.write().await.unwrap_err().kind(),
        lock.try_write().await.unwrap_err().kind(),
        lock.read_within(stage.soon()).await.unwrap_err().kind(),
        lock.run(|_| async {}).await.unwrap_err().kind(),
    ];
    assert_eq!(kinds, [ErrorKind::Closed; 4]);
}

/// The waiters of a client that is closed are told, and leave the queue.
pub async fn closing_ends_every_wait(stage: Stage) {
    let (here, there) = (stage.client().await, stage.client().await);
    let guard = there.write().await;
    let waiting = [here.queue_up(Mode::Read).await, here.queue_up(Mode::Write).await];
    within(stage.soon(), "close", here.close()).await;
    for waiting in waiting {
        assert_eq!(waiting.outcome().await.unwrap_err().kind(), ErrorKind::Closed);
    }
    assert!(there.look().await.queue.is_empty(), "nothing is left in the queue when `close` returns");
    assert!(guard.is_valid(), "other clients are not affected");
    drop(guard);
    drop(there.write().await);
}

/// Closing while tasks acquire and give back ends, and leaves nothing.
pub async fn closing_in_the_middle_of_work_leaves_nothing(stage: Stage) {
    let there = stage.client().await;
    for _ in 0..10 {
        let here = stage.client().await;
        let work = |number: usize| {
            let lock = here.lock(stage.group(), format!("name {}", number % 2));
            tokio::spawn(async move { while lock.write().await.is_ok() {} })
        };
        let tasks: Vec<_> = (0..4).map(work).collect();
        eventually(stage.soon(), "they work", || async { here.keys_in_use() > 1 }).await;
        within(stage.soon(), "close", here.close()).await;
        for task in tasks {
            timeout(stage.soon(), task).await.expect("it is told").unwrap();
        }
        for name in ["name 0", "name 1"] {
            assert!(there.lock(stage.group(), name).try_write().await.unwrap().is_some());
        }
    }
}
