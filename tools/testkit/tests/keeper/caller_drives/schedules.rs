//! Schedules that a caller which drives may bring about: who waits for what it does not poll, and where it polls.

#![allow(clippy::disallowed_methods, reason = "a test stands outside: it starts tasks of its own")]

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::time::{sleep, timeout};
use ylock_core::{Fairness, Guard, MemoryStore, Options, Result, Unlocked, Ylock};
use ylock_testkit::{Call, Faulty, Slow, eventually, poll_once};

use crate::support::{Gate, Notes, current_thread, over, runtime};

const SOON: Duration = Duration::from_secs(1);
const TRIP: Duration = Duration::from_millis(5);

type Waits<T> = Pin<Box<dyn Future<Output = Result<T>> + Send>>;

fn write(ylock: &Ylock) -> Waits<Guard> {
    let lock = ylock.lock("group", "name");
    Box::pin(async move { lock.write().await })
}

async fn soon<T>(waits: Waits<T>) -> T {
    timeout(SOON, waits).await.expect("in time").unwrap()
}

fn stopped_before(call: Call) -> (MemoryStore, Arc<Gate>, Ylock) {
    let (store, gate) = (MemoryStore::new(), Arc::new(Gate::before(call)));
    let ylock = over(&store, &gate);
    gate.close();
    (store, gate, ylock)
}

fn strict() -> Options {
    Options::default().with_fairness(Fairness::Strict)
}

/// The waiter was there before the caller that gives back begins: no change of the entry comes after that.
#[tokio::test(start_paused = true)]
async fn a_waiter_that_was_there_does_not_wait_for_a_release_that_its_caller_does_not_poll() {
    let (_, gate, ylock) = stopped_before(Call::Release);
    let ylock = ylock.with_options(strict());
    let guard = soon(write(&ylock)).await;
    let mut next = write(&ylock);
    assert!(poll_once(next.as_mut()).await.is_none());
    let mut unlocks: Waits<Unlocked> = Box::pin(guard.unlock());
    assert!(poll_once(unlocks.as_mut()).await.is_none());
    gate.open();
    drop(timeout(TRIP, next).await.expect("at once").unwrap());
    drop(unlocks);
}

/// The same with a lease that is longer than that of the grant: it goes through the store.
#[tokio::test(start_paused = true)]
async fn a_waiter_with_a_longer_lease_does_not_wait_for_a_release_that_its_caller_does_not_poll() {
    let (_, gate, ylock) = stopped_before(Call::Release);
    let long = ylock.clone().with_options(Options::default().with_lease(Duration::from_secs(100)));
    let guard = soon(write(&ylock)).await;
    let mut next = write(&long);
    assert!(poll_once(next.as_mut()).await.is_none());
    let mut unlocks: Waits<Unlocked> = Box::pin(guard.unlock());
    assert!(poll_once(unlocks.as_mut()).await.is_none());
    gate.open();
    drop(timeout(TRIP, next).await.expect("at once").unwrap());
    drop(unlocks);
}

#[test]
fn an_unlock_outside_any_runtime_is_done_by_a_runtime_of_its_client() {
    let store = MemoryStore::new();
    let ylock = over(&store, &Arc::new(Slow::new(TRIP, TRIP)));
    let runtime = runtime();
    let guard = runtime.block_on(soon(write(&ylock)));
    let mut unlocks = pin!(guard.unlock());
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..200 {
        if let Poll::Ready(answer) = unlocks.as_mut().poll(&mut context) {
            assert_eq!(answer.unwrap(), Unlocked::Released);
            assert!(store.is_empty());
            return;
        }
        std::thread::sleep(TRIP);
    }
    panic!("it is not given back; the store is empty: {}", store.is_empty());
}

#[test]
fn an_unlock_by_way_of_the_handle_of_a_runtime_that_has_ended_is_done_elsewhere() {
    let store = MemoryStore::new();
    let ylock = over(&store, &Arc::new(Slow::new(TRIP, TRIP)));
    let (lives, ends) = (runtime(), runtime());
    let guard = ends.block_on(soon(write(&ylock)));
    let handle = ends.handle().clone();
    ends.shutdown_background();
    drop(lives.block_on(async { ylock.lock("group", "other").write().await.unwrap() }));
    let (answers, answer) = std::sync::mpsc::channel();
    std::thread::spawn(move || answers.send(handle.block_on(guard.unlock())));
    let answer = answer.recv_timeout(SOON * 3).expect("in time");
    assert_eq!(answer.unwrap(), Unlocked::Released);
    assert!(store.is_empty());
    drop(lives);
}

#[test]
fn an_acquisition_by_way_of_the_handle_of_a_runtime_that_has_ended_is_made_elsewhere() {
    let store = MemoryStore::new();
    let ylock = over(&store, &Arc::new(Slow::new(TRIP, TRIP)));
    let (lives, ends) = (runtime(), runtime());
    let handle = ends.handle().clone();
    ends.shutdown_background();
    drop(lives.block_on(async { ylock.lock("group", "other").write().await.unwrap() }));
    let (answers, answer) = std::sync::mpsc::channel();
    std::thread::spawn(move || answers.send(handle.block_on(write(&ylock)).map(|guard| guard.is_valid())));
    assert!(answer.recv_timeout(SOON * 3).expect("in time").unwrap());
    drop(lives);
}

const PLACES: usize = 4;

fn throttled(store: &MemoryStore, gate: &Arc<Gate>) -> Ylock {
    Ylock::from_arc(Faulty::over(Notes::throttled(store.engine(), PLACES), gate))
}

/// Gives a lock back while releases that are not polled have all places, or are the next to have them.
async fn is_given_back_beside_unpolled(wait_for_place: bool) {
    let (store, gate) = (MemoryStore::new(), Arc::new(Gate::before(Call::Release)));
    let ylock = throttled(&store, &gate);
    let mut guards = Vec::new();
    // More than the places that are new when those that have one have succeeded.
    for number in 0..if wait_for_place { PLACES * 4 } else { PLACES } {
        guards.push(ylock.lock("users", format!("{number}")).write().await.unwrap());
    }
    gate.close();
    let unpolled = if wait_for_place { guards.split_off(PLACES) } else { std::mem::take(&mut guards) };
    drop(guards);
    sleep(TRIP).await;
    let mut unlocks: Vec<_> = unpolled.into_iter().map(|guard| Box::pin(guard.unlock())).collect();
    for unlock in &mut unlocks {
        assert!(poll_once(unlock.as_mut()).await.is_none());
    }
    sleep(TRIP).await;
    assert_eq!(gate.waiting(), PLACES);
    gate.open();
    let began = tokio::time::Instant::now();
    drop(ylock.lock("group", "name").write().await.unwrap());
    let there = Ylock::new(store.engine());
    drop(timeout(SOON * 60, there.lock("group", "name").write()).await.expect("it is free"));
    assert!(began.elapsed() < SOON, "it took {:?}", began.elapsed());
    drop(unlocks);
    eventually(SOON, "all are given back", || async { ylock.keys_in_use() == 0 }).await;
}

#[tokio::test(start_paused = true)]
async fn releases_that_are_not_polled_and_have_a_place_keep_no_other_from_giving_back() {
    is_given_back_beside_unpolled(false).await;
}

#[tokio::test(start_paused = true)]
async fn releases_that_are_not_polled_and_wait_for_a_place_keep_no_other_from_giving_back() {
    is_given_back_beside_unpolled(true).await;
}

/// A loop of pairs leaves the processor to others.
#[test]
fn a_caller_that_never_has_to_wait_lets_others_run() {
    let ylock = Ylock::in_memory();
    let runtime = current_thread();
    runtime.block_on(async {
        let other = tokio::spawn(async { tokio::task::yield_now().await });
        for _ in 0..10_000 {
            drop(ylock.lock("group", "name").write().await.unwrap().unlock().await);
            if other.is_finished() {
                return;
            }
        }
        panic!("the other task never ran");
    });
}

/// Callers come, go, stop polling and change threads.
#[test]
fn no_caller_is_forgotten() {
    let store = MemoryStore::new();
    let ylock = over(&store, &Arc::new(Slow::new(Duration::from_micros(100), Duration::from_micros(100))));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
    runtime.block_on(async {
        let mut tasks = Vec::new();
        for task in 0..16_u64 {
            let ylock = ylock.clone();
            tasks.push(tokio::spawn(async move {
                for round in 0..300_u64 {
                    let lock = ylock.lock("group", format!("{}", (task + round) % 3));
                    match (task * 7 + round * 13) % 6 {
                        0 => drop(timeout(Duration::from_micros(round * 5), lock.write()).await),
                        1 => drop(lock.write().now().await.unwrap()),
                        2 => drop(lock.read().await.unwrap()),
                        3 => {
                            let guard = lock.write().await.unwrap();
                            drop(timeout(Duration::from_micros(round), guard.unlock()).await);
                        }
                        4 => drop(lock.write().within(Duration::from_micros(round * 3)).await.unwrap()),
                        _ => drop(lock.write().await.unwrap().unlock().await.unwrap()),
                    }
                }
            }));
        }
        for task in tasks {
            timeout(Duration::from_secs(60), task).await.expect("none waits for ever").unwrap();
        }
        eventually(SOON, "all are given back", || async { ylock.keys_in_use() == 0 && store.is_empty() })
            .await;
    });
}

/// Its timers end with an error then, which is a panic.
#[test]
fn an_unlock_whose_runtime_ends_while_another_thread_polls_it_goes_on_elsewhere() {
    let store = MemoryStore::new();
    let ylock = over(&store, &Arc::new(Slow::new(SOON / 10, SOON / 10)));
    let (lives, ends) = (runtime(), runtime());
    let guard = ends.block_on(soon(write(&ylock)));
    drop(lives.block_on(async { ylock.lock("group", "other").write().await.unwrap() }));
    let handle = ends.handle().clone();
    let (answers, answer) = std::sync::mpsc::channel();
    std::thread::spawn(move || answers.send(handle.block_on(guard.unlock())));
    std::thread::sleep(SOON / 20);
    ends.shutdown_background();
    let answer = answer.recv_timeout(SOON * 3).expect("in time");
    assert_eq!(answer.unwrap(), Unlocked::Released);
    drop(lives);
}

#[test]
fn an_acquisition_whose_runtime_ends_while_another_thread_polls_it_goes_on_elsewhere() {
    let store = MemoryStore::new();
    let ylock = over(&store, &Arc::new(Slow::new(SOON / 10, SOON / 10)));
    let (lives, ends) = (runtime(), runtime());
    drop(ends.block_on(async { ylock.lock("group", "other").write().await.unwrap() }));
    drop(lives.block_on(async { ylock.lock("group", "another").write().await.unwrap() }));
    let handle = ends.handle().clone();
    let (answers, answer) = std::sync::mpsc::channel();
    std::thread::spawn(move || answers.send(handle.block_on(write(&ylock)).map(|guard| guard.is_valid())));
    std::thread::sleep(SOON / 20);
    ends.shutdown_background();
    assert!(answer.recv_timeout(SOON * 3).expect("in time").unwrap());
    drop(lives);
}

/// The end of the runtime waits for its blocking tasks.
#[test]
fn a_runtime_whose_blocking_task_unlocks_comes_to_its_end() {
    let store = MemoryStore::new();
    let ylock = over(&store, &Arc::new(Slow::new(SOON / 10, SOON / 10)));
    let ends = runtime();
    let guard = ends.block_on(soon(write(&ylock)));
    let handle = ends.handle().clone();
    drop(ends.spawn_blocking(move || drop(handle.block_on(guard.unlock()))));
    std::thread::sleep(SOON / 20);
    let (tells, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        drop(ends);
        tells.send(()).unwrap();
    });
    ended.recv_timeout(SOON * 3).expect("in time");
}

#[test]
fn futures_that_are_begun_in_one_runtime_and_awaited_in_another_end() {
    let store = MemoryStore::new();
    let ylock = over(&store, &Arc::new(Slow::new(Duration::from_micros(300), Duration::from_micros(300))));
    let lives = runtime();
    for round in 0..60_u32 {
        let first = if round % 2 == 0 { runtime() } else { current_thread() };
        let mut all: Vec<Waits<Guard>> = (0..8_u32)
            .map(|number| {
                let lock = ylock.lock("group", format!("{}", (number + round) % 3));
                let waits: Waits<Guard> = Box::pin(async move { lock.write().await });
                waits
            })
            .collect();
        first.block_on(async {
            for waits in &mut all {
                assert!(poll_once(waits.as_mut()).await.is_none());
            }
        });
        let ender = std::thread::spawn(move || drop(first));
        lives.block_on(async {
            let tasks: Vec<_> = all
                .into_iter()
                .enumerate()
                .map(|(number, waits)| {
                    tokio::spawn(async move {
                        let Ok(guard) = timeout(Duration::from_millis(number as u64 * 100), waits).await
                        else {
                            return;
                        };
                        let guard = guard.unwrap();
                        if number % 3 == 0 {
                            drop(guard);
                        } else {
                            assert!(guard.unlock().await.is_ok());
                        }
                    })
                })
                .collect();
            for task in tasks {
                timeout(Duration::from_secs(20), task).await.expect("none waits for ever").unwrap();
            }
        });
        ender.join().unwrap();
    }
    lives.block_on(eventually(SOON, "all are given back", || async {
        ylock.keys_in_use() == 0 && store.is_empty()
    }));
}

/// Clients are closed while callers come and go.
#[test]
fn close_comes_to_its_end_whatever_the_callers_do() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
    runtime.block_on(async {
        for round in 0..100_u64 {
            let store = MemoryStore::new();
            let ylock =
                over(&store, &Arc::new(Slow::new(Duration::from_micros(200), Duration::from_micros(200))));
            let mut kept: Vec<Waits<Unlocked>> = Vec::new();
            let mut waiting = Vec::new();
            for number in 0..4 {
                let guard = ylock.lock("kept", format!("{number}")).write().await.unwrap();
                let lock = ylock.lock("kept", format!("{number}"));
                let mut waits: Waits<Guard> = Box::pin(async move { lock.write().await });
                assert!(poll_once(waits.as_mut()).await.is_none());
                waiting.push(waits);
                let mut unlocks: Waits<Unlocked> = Box::pin(guard.unlock());
                if poll_once(unlocks.as_mut()).await.is_none() {
                    kept.push(unlocks);
                }
            }
            let tasks: Vec<_> = (0..8_u64)
                .map(|task| {
                    let ylock = ylock.clone();
                    tokio::spawn(async move {
                        while let Ok(guard) = ylock.lock("group", format!("{}", task % 3)).write().await {
                            drop(timeout(Duration::from_micros(task * 100), guard.unlock()).await);
                        }
                    })
                })
                .collect();
            sleep(Duration::from_micros(round * 50)).await;
            timeout(SOON * 2, ylock.close()).await.expect("closed in time");
            for task in tasks {
                timeout(SOON, task).await.expect("none waits for ever").unwrap();
            }
            for waits in waiting {
                drop(timeout(SOON, waits).await.expect("none waits for ever"));
            }
            for unlocks in kept {
                assert!(timeout(SOON, unlocks).await.expect("none waits for ever").is_ok());
            }
            assert!(store.is_empty());
        }
    });
}

/// All in one task, which is woken for each.
#[test]
fn many_callers_in_one_task_end() {
    let store = MemoryStore::new();
    let ylock = over(&store, &Arc::new(Slow::new(TRIP, TRIP)));
    let runtime = runtime();
    runtime.block_on(async {
        let one = async |number: usize| {
            let guard = ylock.lock("group", format!("{}", number % 50)).write().await.unwrap();
            guard.unlock().await.unwrap()
        };
        let all = futures_util::future::join_all((0..300).map(one));
        assert_eq!(timeout(SOON * 10, all).await.expect("in time").len(), 300);
        eventually(SOON, "all are given back", || async { ylock.keys_in_use() == 0 && store.is_empty() })
            .await;
    });
}

/// No waiter of this client waits for it, so no other caller takes it over.
#[tokio::test(start_paused = true)]
async fn a_release_that_fails_once_is_tried_again_although_its_caller_does_not_poll() {
    #[derive(Debug)]
    struct FailsOnce(std::sync::atomic::AtomicBool);
    #[async_trait::async_trait]
    impl ylock_testkit::Fault for FailsOnce {
        async fn before(&self, call: Call) -> Result<()> {
            if call == Call::Release && !self.0.swap(true, std::sync::atomic::Ordering::SeqCst) {
                return Err(ylock_core::Error::new(ylock_core::ErrorKind::Unavailable, "once"));
            }
            Ok(())
        }
        async fn after(&self, _call: Call) -> Result<()> {
            Ok(())
        }
    }
    let store = MemoryStore::new();
    let ylock = over(&store, &Arc::new(FailsOnce(false.into())));
    let there = Ylock::new(store.engine());
    let guard = soon(write(&ylock)).await;
    let mut unlocks: Waits<Unlocked> = Box::pin(guard.unlock());
    assert!(poll_once(unlocks.as_mut()).await.is_none());
    let began = tokio::time::Instant::now();
    drop(timeout(SOON * 20, write(&there)).await.expect("in time").unwrap());
    assert!(began.elapsed() < SOON, "another client waited for {:?}", began.elapsed());
    drop(unlocks);
}

/// The lease would have ended while its caller did not poll the release.
#[tokio::test(start_paused = true)]
async fn an_unlock_that_is_polled_again_after_long_is_done() {
    let (store, gate, ylock) = stopped_before(Call::Release);
    let guard = soon(write(&ylock)).await;
    let mut unlocks: Waits<Unlocked> = Box::pin(guard.unlock());
    assert!(poll_once(unlocks.as_mut()).await.is_none());
    gate.open();
    sleep(SOON * 100).await;
    let answer = timeout(SOON * 20, unlocks).await.expect("in time").unwrap();
    assert_eq!(answer, Unlocked::Released, "it was held until it was given back");
    assert!(store.is_empty() && ylock.keys_in_use() == 0);
}

/// A downgrade needs no driver, and a writer that waits goes on when the reader's release is not polled.
#[tokio::test(start_paused = true)]
async fn a_writer_behind_readers_does_not_wait_for_a_reader_that_does_not_poll_its_release() {
    let (_, gate, ylock) = stopped_before(Call::Release);
    let reader = soon(write(&ylock)).await.downgrade().await.unwrap();
    let mut writer = write(&ylock);
    assert!(poll_once(writer.as_mut()).await.is_none());
    let mut unlocks: Waits<Unlocked> = Box::pin(reader.unlock());
    assert!(poll_once(unlocks.as_mut()).await.is_none());
    gate.open();
    drop(timeout(TRIP, writer).await.expect("at once").unwrap());
    drop(unlocks);
}

/// What is on its way does not keep a client that is gone.
#[tokio::test(start_paused = true)]
async fn a_client_is_freed_when_the_last_caller_has_gone() {
    let (store, gate, ylock) = stopped_before(Call::Release);
    let guard = soon(write(&ylock)).await;
    let mut unlocks: Waits<Unlocked> = Box::pin(guard.unlock());
    assert!(poll_once(unlocks.as_mut()).await.is_none());
    let mut waits = write(&ylock);
    assert!(poll_once(waits.as_mut()).await.is_none());
    drop(ylock);
    gate.open();
    drop((waits, unlocks));
    eventually(SOON, "it is given back", || async { store.is_empty() }).await;
    eventually(SOON, "the client is gone", || async { Arc::strong_count(&gate) == 1 }).await;
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    eventually(SOON, "its tasks are gone", || async { tasks() <= 1 }).await;
}

/// A panic of the engine in the caller's own poll is an error of the call.
#[tokio::test(start_paused = true)]
async fn an_engine_that_panics_is_an_error_of_the_caller_and_leaves_nothing() {
    #[derive(Debug)]
    struct Panics(std::sync::atomic::AtomicUsize);
    #[async_trait::async_trait]
    impl ylock_testkit::Fault for Panics {
        async fn before(&self, _call: Call) -> Result<()> {
            sleep(TRIP).await;
            if self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst).is_multiple_of(3) {
                std::panic::resume_unwind(Box::new("an engine that is wrong"));
            }
            Ok(())
        }
        async fn after(&self, _call: Call) -> Result<()> {
            Ok(())
        }
    }
    let store = MemoryStore::new();
    let ylock = over(&store, &Arc::new(Panics(0.into())));
    for _ in 0..20 {
        if let Ok(guard) = timeout(SOON * 20, write(&ylock)).await.expect("in time") {
            drop(timeout(SOON * 20, guard.unlock()).await.expect("in time"));
        }
    }
    eventually(SOON * 20, "it is given back", || async { store.is_empty() && ylock.keys_in_use() == 0 })
        .await;
}

/// With a lease of ten minutes.
#[tokio::test(start_paused = true)]
async fn many_throttled_releases_that_are_not_polled_do_not_hold_up_a_release_for_long() {
    let (store, gate) = (MemoryStore::new(), Arc::new(Gate::before(Call::Release)));
    let ylock = throttled(&store, &gate).with_options(Options::default().with_lease(SOON * 600));
    let mut guards = Vec::new();
    for number in 0..PLACES {
        guards.push(ylock.lock("users", format!("{number}")).write().await.unwrap());
    }
    gate.close();
    let mut unlocks: Vec<_> = guards.into_iter().map(|guard| Box::pin(guard.unlock())).collect();
    for unlock in &mut unlocks {
        assert!(poll_once(unlock.as_mut()).await.is_none());
    }
    gate.open();
    let began = tokio::time::Instant::now();
    for number in 0..10 {
        let guard = ylock.lock("group", format!("{number}")).write().await.unwrap();
        assert!(timeout(SOON * 5_000, guard.unlock()).await.expect("in time").is_ok());
    }
    assert!(began.elapsed() < SOON * 10, "ten releases took {:?}", began.elapsed());
    drop(unlocks);
}
