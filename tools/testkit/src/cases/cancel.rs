//! A caller that stops waiting, after every possible number of polls.

use std::future::Future;

use futures_util::future::join_all;
use ylock_core::{Guard, Lock, Mode, Unlocked};

use crate::{Client, Contender, Fixture, eventually, poll_times};

/// More polls than any call needs.
const ENOUGH: usize = 100;

/// Lets `call` be polled once, twice, and so on until it ends by itself, beside a holder that leaves and a holder that
/// stays; afterwards the lock must be free for others.
async fn cancelled_everywhere<C, F>(fixture: &Fixture, call: C)
where
    C: Fn(Lock) -> F,
    F: Future,
{
    let (here, there) = (fixture.client().await, fixture.client().await);
    for holder in [None, Some(&here), Some(&there)] {
        for polls in 1..=ENOUGH {
            let held = match holder {
                Some(client) => Some(client.write().await),
                None => None,
            };
            let leaves = async {
                tokio::task::yield_now().await;
                drop(held);
            };
            let (ended, ()) = tokio::join!(poll_times(polls, call(here.lock.clone())), leaves);
            let ended = ended.map(drop).is_some();
            expect_free(fixture, &there).await;
            if ended {
                break;
            }
            assert!(polls < ENOUGH, "it never ends");
        }
    }
}

/// The lock has no holders and no waiters, and another client gets it at once.
async fn expect_free(fixture: &Fixture, other: &Client) {
    drop(other.write().await);
    let free = || async {
        let seen = other.look().await;
        seen.holders.is_empty() && seen.queue.is_empty()
    };
    eventually(fixture.soon(), "it has no holders and no waiters", free).await;
}

/// `write` can be dropped after any poll.
pub async fn a_write_is_dropped_after_any_poll(fixture: Fixture) {
    cancelled_everywhere(&fixture, |lock| async move { lock.write().await.unwrap() }).await;
}

/// `read` can be dropped after any poll.
pub async fn a_read_is_dropped_after_any_poll(fixture: Fixture) {
    cancelled_everywhere(&fixture, |lock| async move { lock.read().await.unwrap() }).await;
}

/// `now()` can be dropped after any poll.
pub async fn a_try_is_dropped_after_any_poll(fixture: Fixture) {
    cancelled_everywhere(&fixture, |lock| async move { lock.write().now().await.unwrap() }).await;
    cancelled_everywhere(&fixture, |lock| async move { lock.read().now().await.unwrap() }).await;
}

/// `within()` can be dropped after any poll.
pub async fn a_limited_wait_is_dropped_after_any_poll(fixture: Fixture) {
    let time = fixture.soon();
    cancelled_everywhere(&fixture, |lock| async move { lock.write().within(time).await.unwrap() }).await;
    cancelled_everywhere(&fixture, |lock| async move { lock.read().within(time).await.unwrap() }).await;
}

/// `run` can be dropped after any poll, also while the work is going on.
pub async fn a_run_is_dropped_after_any_poll(fixture: Fixture) {
    let work = |_| async {
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
    };
    cancelled_everywhere(&fixture, |lock| async move { lock.write().run(work).await.unwrap() }).await;
    cancelled_everywhere(&fixture, |lock| async move { lock.read().run(work).await.unwrap() }).await;
}

/// `unlock` can be dropped after any poll, or before the first: the lock is given back.
pub async fn an_unlock_is_dropped_after_any_poll(fixture: Fixture) {
    cancelled_while_held(&fixture, |guard| async {
        assert_eq!(guard.unlock().await.unwrap(), Unlocked::Released);
    })
    .await;
}

/// `downgrade` can be dropped after any poll, or before the first: the lock is given back.
pub async fn a_downgrade_is_dropped_after_any_poll(fixture: Fixture) {
    cancelled_while_held(&fixture, |guard| async { drop(guard.downgrade().await.unwrap()) }).await;
}

fn drop_unpolled<F: Future>(future: F) -> Option<F::Output> {
    drop(future);
    None
}

async fn cancelled_while_held<C, F>(fixture: &Fixture, call: C)
where
    C: Fn(Guard) -> F,
    F: Future<Output = ()>,
{
    let (here, there) = (fixture.client().await, fixture.client().await);
    for polls in 0..=ENOUGH {
        let guard = here.write().await;
        let waiting = [there.queue_up(Mode::Write).await, here.queue_up(Mode::Read).await];
        let future = call(guard);
        let ended = if polls > 0 { poll_times(polls, future).await } else { drop_unpolled(future) };
        join_all(waiting.map(Contender::visit)).await;
        expect_free(fixture, &there).await;
        if ended.is_some() {
            return;
        }
    }
    panic!("it never ends");
}
