//! The task that looks after callers which drive, and runtimes: one ends, or has no timers, or the client goes.

#![allow(clippy::disallowed_methods, reason = "a test stands outside: it starts tasks of its own")]

use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tokio::runtime::Runtime;
use tokio::time::timeout;
use ylock_core::{ErrorKind, Guard, MemoryStore, Result, Unlocked, Ylock};
use ylock_testkit::{Call, Fault, LosesReplies, Slow, poll_once};

use crate::support::{Gate, current_thread, over, runtime};

const SOON: Duration = Duration::from_secs(1);
const TRIP: Duration = Duration::from_millis(5);

type Waits<T> = Pin<Box<dyn Future<Output = Result<T>> + Send>>;

fn write(ylock: &Ylock, name: &str) -> Waits<Guard> {
    let lock = ylock.lock("group", name);
    Box::pin(async move { lock.write().await })
}

async fn soon<T>(waits: Waits<T>) -> T {
    timeout(SOON, waits).await.expect("in time").unwrap()
}

async fn pair(ylock: &Ylock) {
    let guard = ylock.lock("group", "pair").write().await.unwrap();
    assert!(guard.unlock().await.unwrap().is_released());
}

fn within(time: Duration, condition: impl Fn() -> bool) -> bool {
    let began = Instant::now();
    while began.elapsed() < time {
        if condition() {
            return true;
        }
        std::thread::sleep(TRIP / 5);
    }
    condition()
}

/// The runtime of the task that looks after the callers ends when it has just seen a driver for the first time.
#[test]
fn a_release_that_is_not_polled_goes_on_although_the_runtime_that_looks_after_it_ends() {
    for _ in 0..5 {
        let (store, gate) = (MemoryStore::new(), Arc::new(Gate::before(Call::Release)));
        let ylock = over(&store, &gate);
        let (ends, lives) = (runtime(), runtime());
        ends.block_on(pair(&ylock));
        let guard = lives.block_on(soon(write(&ylock, "name")));
        std::thread::sleep(TRIP * 10);
        gate.close();
        let mut unlocks: Waits<Unlocked> = Box::pin(guard.unlock());
        assert!(lives.block_on(poll_once(unlocks.as_mut())).is_none());
        std::thread::sleep(TRIP / 2);
        ends.shutdown_background();
        gate.open();
        assert!(within(SOON, || store.is_empty()), "nothing goes on with it");
        assert_eq!(lives.block_on(soon(unlocks)), Unlocked::Released);
    }
}

/// An engine that takes its time to go.
#[derive(Debug)]
struct GoesSlowly(Duration);

#[async_trait]
impl Fault for GoesSlowly {
    async fn before(&self, _call: Call) -> Result<()> {
        Ok(())
    }

    async fn after(&self, _call: Call) -> Result<()> {
        Ok(())
    }
}

impl Drop for GoesSlowly {
    fn drop(&mut self) {
        std::thread::sleep(self.0);
    }
}

fn tasks_left_by_clients(takes: Duration, clients: usize) -> usize {
    let runtime = runtime();
    for _ in 0..clients {
        let ylock = over(&MemoryStore::new(), &Arc::new(GoesSlowly(takes)));
        runtime.block_on(pair(&ylock));
        // The task is idle.
        std::thread::sleep(TRIP * 8);
        drop(ylock);
    }
    let tasks = || runtime.metrics().num_alive_tasks();
    within(SOON, || tasks() == 0);
    tasks()
}

#[test]
fn a_client_whose_engine_goes_slowly_leaves_no_task() {
    assert_eq!(tasks_left_by_clients(TRIP * 4, 5), 0);
}

#[test]
fn a_client_that_goes_leaves_no_task() {
    assert_eq!(tasks_left_by_clients(Duration::ZERO, 50), 0);
}

/// Returns what an unlock answers whose runtime ends after this time.
fn unlock_in_a_runtime_that_ends(
    after: Duration,
    ends: Runtime,
) -> Result<Result<Unlocked>, RecvTimeoutError> {
    let lives = runtime();
    let ylock = over(&MemoryStore::new(), &Arc::new(Slow::new(TRIP / 5, TRIP / 5)));
    let guard = ends.block_on(soon(write(&ylock, "name")));
    lives.block_on(pair(&ylock));
    let handle = ends.handle().clone();
    let (answers, answer) = channel();
    std::thread::spawn(move || answers.send(handle.block_on(guard.unlock())));
    std::thread::sleep(after);
    ends.shutdown_background();
    answer.recv_timeout(SOON * 3)
}

#[test]
fn an_unlock_whose_runtime_ends_in_its_first_milliseconds_is_done() {
    // Several at a time: what takes long is the answer of the store.
    std::thread::scope(|threads| {
        for first in 0..8 {
            threads.spawn(move || {
                for round in (first..200_u64).step_by(8) {
                    let after = Duration::from_micros(round * 17);
                    let ends = if round / 8 % 2 == 0 { runtime() } else { current_thread() };
                    let answer = unlock_in_a_runtime_that_ends(after, ends);
                    assert!(matches!(answer, Ok(Ok(Unlocked::Released))), "after {after:?}: {answer:?}");
                }
            });
        }
    });
}

/// The pause before the second attempt needs a timer.
#[test]
fn a_release_that_cannot_go_on_in_a_runtime_without_timers_is_told() {
    let ylock = over(&MemoryStore::new(), &Arc::new(LosesReplies::of(Call::Release, 1)));
    let (answers, answer) = channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let unlocked = runtime.block_on(async {
            let guard = ylock.lock("group", "name").write().await.unwrap();
            guard.unlock().await
        });
        answers.send(unlocked.map_err(|error| error.kind()))
    });
    assert_eq!(answer.recv_timeout(SOON * 3).expect("in time"), Err(ErrorKind::Unexpected));
}
