//! Trying, and waiting for a limited time.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::Barrier;
use tokio::time::{Instant, sleep, timeout};
use ylock_core::{Error, ErrorKind, Mode, Result, Unlocked};

use crate::patient::{answered, is_silence};
use crate::{Client, Contender, Fixture, eventually, quiet_time, within};

/// Trying a free lock gets it, in both modes.
pub async fn a_try_on_a_free_lock_gets_it(fixture: Fixture) {
    let client = fixture.client().await;
    for mode in [Mode::Write, Mode::Read] {
        let guard = client.try_acquire(mode).await.expect("it has no holder");
        assert_eq!(guard.mode(), mode);
        assert_eq!(guard.unlock().await.unwrap(), Unlocked::Released);
    }
}

/// Trying a lock that is held answers at once and leaves nothing in the queue.
pub async fn a_try_on_a_held_lock_answers_none_and_leaves_nothing(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    let guard = here.write().await;
    for client in [&here, &there] {
        for mode in [Mode::Write, Mode::Read] {
            assert!(client.try_acquire(mode).await.is_none());
        }
    }
    assert!(here.look().await.queue.is_empty() && there.look().await.queue.is_empty());
    eventually(fixture.soon(), "a try that failed is forgotten", || async { there.keys_in_use() == 0 }).await;
    drop(guard);
}

/// Trying does not overtake a waiter, here or in another client.
pub async fn a_try_does_not_overtake_those_who_wait(fixture: Fixture) {
    let clients = fixture.clients(3).await;
    let reader = clients[0].read().await;
    let writer = clients[1].queue_up_seen_by(Mode::Write, &clients[2]).await;
    for client in &clients[1..] {
        assert!(client.try_acquire(Mode::Read).await.is_none(), "a try overtook a writer that waits");
    }
    drop(reader);
    drop(writer.guard().await);
}

/// Of many callers that try a free lock at once exactly one gets it: never two, never none. Where the store was too busy to answer one of them in
/// time, which a try is told, that one may have been the one.
pub async fn of_many_tries_at_once_exactly_one_wins(fixture: Fixture) {
    let clients = fixture.clients(8).await;
    let start = Arc::new(Barrier::new(clients.len()));
    let mut answered = 0;
    for round in 0..fixture.harness().rounds() {
        let tries = clients.iter().map(|client| {
            let (lock, start) = (client.lock.clone(), Arc::clone(&start));
            tokio::spawn(async move {
                start.wait().await;
                lock.write().now().await
            })
        });
        let tried = join_all(tries.collect::<Vec<_>>()).await;
        let (mut won, mut silent) = (Vec::new(), 0);
        for tried in tried {
            match tried.expect("no panic") {
                Ok(guard) => won.extend(guard),
                Err(error) if is_silence(&error) => silent += 1,
                Err(error) => panic!("round {round}: {error:#}"),
            }
        }
        assert!(won.len() == 1 || won.is_empty() && silent > 0, "round {round}: {} won", won.len());
        for guard in won {
            assert_eq!(guard.unlock().await.unwrap(), Unlocked::Released);
        }
        if silent > 0 {
            // What was not answered is undone in the background.
            clients[0].become_free(&[clients[0].key().name()]).await;
        } else {
            answered += 1;
        }
    }
    assert!(answered * 2 > fixture.harness().rounds(), "only {answered} rounds were answered");
}

/// Waiting for no time is trying.
pub async fn waiting_for_no_time_is_a_try(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    let guard = within(fixture.soon(), "zero on a free lock", here.lock.write().within(Duration::ZERO)).await;
    let guard = guard.unwrap().expect("it has no holder");
    for client in [&here, &there] {
        assert!(client.lock.write().within(Duration::ZERO).await.unwrap().is_none());
        assert!(client.lock.read().within(Duration::ZERO).await.unwrap().is_none());
    }
    drop(guard);
}

/// A wait ends when its time is over: not before, and not much later.
pub async fn a_wait_ends_on_time(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    let guard = here.write().await;
    let time = fixture.harness().trip() * 2 + Duration::from_millis(100);
    for (client, mode) in [(&here, Mode::Write), (&there, Mode::Write), (&there, Mode::Read)] {
        // Once more where a busy machine has not answered by then.
        let (mut rounds, mut longest) = (0, Duration::ZERO);
        let (waited, took) = loop {
            let (start, quiet_start) = (Instant::now(), quiet_time());
            let waited = match mode {
                Mode::Write => client.lock.write().within(time).await,
                Mode::Read => client.lock.read().within(time).await,
            };
            let took = start.elapsed();
            longest = longest.max(quiet_time() - quiet_start);
            rounds += 1;
            if rounds == 5 || !waited.as_ref().is_err_and(is_silence) {
                break (waited, took);
            }
        };
        assert!(waited.unwrap().is_none());
        assert!(
            took >= time && longest < time + fixture.soon(),
            "waited {took:?}, at most {longest:?}, instead of {time:?}"
        );
    }
    drop(guard);
}

/// A wait of ages is a wait, not an overflow.
pub async fn a_wait_of_ages_is_no_overflow(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    let guard = here.write().await;
    let ages = |client: &Client| {
        let lock = client.lock.clone();
        tokio::spawn(async move { lock.write().within(Duration::MAX).await.unwrap().map(drop).is_some() })
    };
    let (local, remote) = (ages(&here), ages(&there));
    eventually(fixture.soon(), "both wait", || async { here.look().await.queue.len() == 2 }).await;
    drop(guard);
    assert!(within(fixture.soon(), "the local one gets in", local).await.unwrap());
    assert!(within(fixture.soon(), "the remote one gets in", remote).await.unwrap());
}

/// The longest wait of the options ends in an error of its own kind.
pub async fn the_wait_of_the_options_ends_in_timed_out(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    let guard = here.write().await;
    let options = fixture.short_options().with_max_wait(fixture.harness().trip() + Duration::from_millis(50));
    let impatient = there.lock.with_options(options);
    let write = over(|| impatient.write()).await;
    let read = over(|| impatient.read()).await;
    for error in [write, read] {
        assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
        assert_eq!(error.key(), Some(&there.key()));
    }
    assert_eq!(over(|| impatient.write().run(|_| async {})).await.kind(), ErrorKind::TimedOut);
    drop(guard);
}

/// Returns the error of a wait that is over; of another one where a busy machine has not answered by then.
async fn over<T, F: Future<Output = Result<T>>>(wait: impl Fn() -> F) -> Error {
    match answered(wait).await {
        Ok(_) => panic!("it got in"),
        Err(error) => error,
    }
}

/// A wait that is over leaves no place in the queue that others would have to wait for.
pub async fn a_wait_that_is_over_leaves_no_place_in_the_queue(fixture: Fixture) {
    let clients = fixture.clients(3).await;
    let guard = clients[0].write().await;
    let time = fixture.harness().trip() * 2 + Duration::from_millis(50);
    for client in &clients {
        assert!(answered(|| client.lock.write().within(time)).await.unwrap().is_none());
    }
    let empty = || async { clients[0].look().await.queue.is_empty() };
    eventually(fixture.soon(), "the queue is empty", empty).await;
    let waiter = clients[2].queue_up(Mode::Write).await;
    drop(guard);
    drop(waiter.guard().await);
}

/// A lock that is granted at the moment at which the wait ends is either held or free, never lost.
pub async fn a_grant_in_the_last_moment_is_not_lost(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    let time = fixture.harness().trip() + Duration::from_millis(10);
    for round in 0..(fixture.harness().rounds() / 10) as u32 {
        let guard = here.write().await;
        let lock = there.lock.clone();
        let waiter = tokio::spawn(async move {
            let waited = lock.write().within(time).await;
            // A busy machine may not have answered by then.
            waited.or_else(|error| if is_silence(&error) { Ok(None) } else { Err(error) }).unwrap()
        });
        // Work that ends a little before, with, or a little after the wait.
        sleep(time.mul_f64(0.8 + 0.02 * f64::from(round % 20))).await;
        drop(guard);
        drop(within(fixture.soon(), "the wait ends", waiter).await.unwrap());
        drop(here.write().await);
    }
}

/// A future that is dropped by `tokio::time::timeout` has left the queue.
pub async fn an_outer_timeout_is_as_good_as_our_own(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    let guard = here.write().await;
    assert!(timeout(Duration::from_millis(50), there.lock.write()).await.is_err());
    let empty = || async { here.look().await.queue.is_empty() };
    eventually(fixture.soon(), "the queue is empty", empty).await;
    drop(guard);
    let waiter = Contender::start(&here, Mode::Write);
    drop(waiter.guard().await);
}
