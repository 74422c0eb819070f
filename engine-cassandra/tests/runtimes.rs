//! Clients that outlive the runtime in which they connected.
#![allow(clippy::disallowed_methods, reason = "tests start tasks of their own")]

mod cluster;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use ylock_core::{Unlocked, Ylock};
use ylock_testkit::{eventually, within};

/// Far below the time for which an outage is borne, and enough to connect on a busy machine.
const SOON: Duration = Duration::from_secs(10);

/// A client whose waiters and holders are there for far longer than that.
async fn client() -> Ylock {
    cluster::client_with(SOON * 3).await
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

#[test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
fn a_client_goes_on_in_another_runtime_when_the_one_that_it_connected_in_has_ended() {
    let (first, second, third) = (runtime(), runtime(), runtime());
    let engine = Arc::new(first.block_on(cluster::engine()));
    let ylock = Ylock::from_arc(engine.clone())
        .with_options(ylock_core::Options::default().with_lease(cluster::LEASE));
    let locks = ylock.locks(cluster::group());
    let held = first.block_on(locks.write("held")).unwrap();
    let sent = engine.requests();
    drop(first);
    second.block_on(async {
        let guard = within(SOON, "a lock", locks.write("other")).await.unwrap();
        assert_eq!(within(SOON, "given back", guard.unlock()).await.unwrap(), Unlocked::Released);
        assert!(engine.requests() > sent, "the count goes on");
        // What was acquired in the first runtime is renewed from here.
        tokio::time::sleep(cluster::LEASE * 2).await;
        assert!(held.is_valid());
        assert_eq!(within(SOON, "given back", held.unlock()).await.unwrap(), Unlocked::Released);
    });
    drop(second);
    third.block_on(async {
        let seen = within(SOON, "a look", ylock.inspect(locks.group(), "held")).await.unwrap();
        assert!(seen.holders.is_empty());
        within(SOON, "closed", ylock.close()).await;
    });
}

#[test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
fn requests_of_other_runtimes_go_on_while_the_one_with_the_connections_ends() {
    let (first, second) = (runtime(), runtime());
    let ylock = first.block_on(client());
    let locks = ylock.locks(cluster::group());
    let (stop, visits) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let visitors: Vec<_> = (0..20)
        .map(|name| {
            let (locks, stop, visits) = (locks.clone(), Arc::clone(&stop), Arc::clone(&visits));
            second.spawn(async move {
                let mut longest = Duration::ZERO;
                while !stop.load(Ordering::Relaxed) {
                    let began = Instant::now();
                    let guard = locks.write(format!("name-{name}")).await.unwrap();
                    longest = longest.max(began.elapsed());
                    assert!(guard.unlock().await.unwrap().is_released());
                    visits.fetch_add(1, Ordering::Relaxed);
                }
                longest
            })
        })
        .collect();
    let until_more = || async {
        let before = visits.load(Ordering::Relaxed);
        eventually(SOON * 5, "visits go on", || async { visits.load(Ordering::Relaxed) > before + 100 })
            .await;
    };
    second.block_on(until_more());
    drop(first);
    second.block_on(async {
        until_more().await;
        stop.store(true, Ordering::Relaxed);
        for visitor in visitors {
            let longest = visitor.await.expect("no request failed");
            assert!(longest < SOON, "an acquisition took {longest:?}");
        }
        ylock.close().await;
    });
}

#[test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
fn those_who_waited_in_a_runtime_that_has_ended_stand_in_nobodys_way() {
    const NAMES: usize = 20;
    let (first, second) = (runtime(), runtime());
    let waiting = first.block_on(client());
    let group = cluster::group();
    let (holder, next) = second.block_on(async { (client().await, client().await) });
    let (held, waited) = (holder.locks(group.clone()), waiting.locks(group.clone()));
    let guards: Vec<_> =
        (0..NAMES).map(|name| second.block_on(held.write(format!("name-{name}"))).unwrap()).collect();
    for name in 0..NAMES {
        let waited = waited.clone();
        first.spawn(async move { waited.write(format!("name-{name}")).await.map(drop) });
    }
    second.block_on(async {
        let queued = || async {
            let mut all = true;
            for name in 0..NAMES {
                let seen = holder.inspect(group.as_str(), format!("name-{name}")).await.unwrap();
                all &= seen.queue.len() == 1;
            }
            all
        };
        eventually(SOON * 5, "all wait", queued).await;
    });
    drop(first);
    let ended = Instant::now();
    second.block_on(async {
        for guard in guards {
            assert!(guard.unlock().await.unwrap().is_released());
        }
        let locks = next.locks(group.clone());
        for name in 0..NAMES {
            let guard = within(SOON, "no client is in the way", locks.write(format!("name-{name}"))).await;
            drop(guard.unwrap());
        }
        println!("all free {:?} after the end of the runtime", ended.elapsed());
        for client in [holder, next, waiting] {
            client.close().await;
        }
    });
}

/// A current-thread runtime that is not polled has not ended. Only its own tasks stand still with it, such as one that makes
/// connections there.
#[test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
fn connections_that_a_runtime_that_stands_still_has_begun_to_make_keep_nobody_waiting() {
    let (first, second) = (runtime(), runtime());
    let still = Builder::new_current_thread().enable_all().build().unwrap();
    let ylock = first.block_on(client());
    let locks = ylock.locks(cluster::group());
    drop(first);
    still.block_on(async {
        let locks = locks.clone();
        tokio::spawn(async move { locks.write("still").await.map(drop) });
        // It begins, and does not get far: connecting takes some trips.
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
    });
    second.block_on(async {
        let guard = within(SOON * 5, "a lock", locks.write("other")).await.unwrap();
        assert_eq!(within(SOON, "given back", guard.unlock()).await.unwrap(), Unlocked::Released);
    });
    // The task that was left behind finds the connections that other tasks have made.
    still.block_on(async {
        let guard = within(SOON * 5, "a lock", locks.write("again")).await.unwrap();
        drop(guard);
        within(SOON * 5, "closed", ylock.close()).await;
    });
    drop(still);
}
