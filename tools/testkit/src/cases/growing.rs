//! Sets of locks that grow while the work goes on.

use std::future::{Future, pending};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::join_all;
use parking_lot::Mutex;
use tokio::sync::Barrier;
use ylock_core::{Error, ErrorKind, Key, Owner, Result, TwoPhaseLocking};

use crate::patient::answered;
use crate::{Client, Fixture, eventually, poll_times, within};

/// More polls than any call needs.
const ENOUGH: usize = 300;

/// The error of a program that knows nothing of locks: what a lock said is gone in it.
#[derive(Debug)]
struct Own;

impl From<Error> for Own {
    fn from(_: Error) -> Self {
        Self
    }
}

/// Waits until a client sees this owner wait for this name.
async fn seen_waiting(owner: Owner, name: &str, by: &Client) {
    let waits = || async {
        let seen = answered(|| by.inspect(by.fixture().group(), name)).await.unwrap();
        seen.queue.iter().any(|waiter| waiter.owner == owner)
    };
    eventually(by.fixture().lapse(), "it waits", waits).await;
}

/// A set that grows in order runs once, holds all that it took until it ends, and gives all back.
pub async fn a_set_that_grows_in_order_runs_once(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    let (runs, group) = (AtomicUsize::new(0), fixture.group());
    let grown = here.two_phase_locking(|taking| {
        runs.fetch_add(1, Ordering::SeqCst);
        let (group, there) = (group.clone(), &there);
        async move {
            let first = taking.write(group.clone(), "a").await?;
            let second = taking.read(group.clone(), "b").await?;
            // What is held already is there at once, also to read what is written, and in any order.
            assert_eq!(taking.read(group.clone(), "a").await?.token(), first.token());
            assert!(first.is_valid() && second.is_valid() && Owner::current() == Some(first.owner()));
            assert!(!there.is_free("a").await && !there.is_free("b").await);
            Ok::<_, Error>(first)
        }
    });
    let first = within(fixture.soon() * 2, "it ends", grown).await.unwrap();
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    assert!(!first.is_valid(), "it was given back");
    there.become_free(&["a", "b"]).await;
}

/// A lock out of order that is free is granted without a second run.
pub async fn a_lock_out_of_order_that_is_free_is_granted(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    let (runs, group) = (AtomicUsize::new(0), fixture.group());
    let grown = here.two_phase_locking(|taking| {
        runs.fetch_add(1, Ordering::SeqCst);
        let group = group.clone();
        async move {
            taking.write(group.clone(), "b").await?;
            taking.write(group.clone(), "a").await.map(drop)
        }
    });
    within(fixture.soon() * 2, "it ends", grown).await.unwrap();
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    there.become_free(&["a", "b"]).await;
}

/// A lock out of order that is not free is not waited for: all are given back, and the closure runs again with both, taken in order. It does so
/// whatever the closure has made of the error.
pub async fn a_lock_out_of_order_that_is_held_makes_it_begin_anew(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    for passes_on in [true, false] {
        let held = there.lock(fixture.group(), "a").write().await.unwrap();
        let (runs, owner, group) = (Arc::new(AtomicUsize::new(0)), Owner::new(), fixture.group());
        let (ylock, counts) = (here.clone(), Arc::clone(&runs));
        let grown = tokio::spawn(owner.scope(async move {
            let take = |taking: TwoPhaseLocking| {
                let (group, run) = (group.clone(), counts.fetch_add(1, Ordering::SeqCst));
                async move {
                    taking.write(group.clone(), "b").await?;
                    let second = taking.write(group.clone(), "a").await;
                    let kind = second.as_ref().err().map(Error::kind);
                    assert_eq!(kind, (run == 0).then_some(ErrorKind::GivesWay));
                    if passes_on {
                        second?;
                    }
                    Ok::<_, Own>(run)
                }
            };
            ylock.two_phase_locking(take).await
        }));
        seen_waiting(owner, "a", &here).await;
        let free = || async { there.is_free("b").await };
        eventually(fixture.soon(), "it holds nothing while it waits", free).await;
        drop(held);
        let run = within(fixture.lapse(), "it ends", grown).await.unwrap().unwrap();
        assert_eq!((run, runs.load(Ordering::SeqCst)), (1, 2), "what the first run returned does not count");
        there.become_free(&["a", "b"]).await;
    }
}

/// Two that read and then want to write both come to an end: one of them begins anew, as a writer.
pub async fn readers_that_want_to_write_come_to_an_end(fixture: Fixture) {
    let clients = fixture.clients(2).await;
    let both_read = Arc::new(Barrier::new(2));
    let grown = clients.iter().map(|client| {
        let (group, both_read, runs) = (fixture.group(), &both_read, AtomicUsize::new(0));
        async move {
            let upgrade = |taking: TwoPhaseLocking| {
                let (group, both_read) = (group.clone(), Arc::clone(both_read));
                let run = runs.fetch_add(1, Ordering::SeqCst);
                async move {
                    let reading = taking.read(group.clone(), "a").await?;
                    if run == 0 {
                        both_read.wait().await;
                    }
                    let writing = taking.write(group, "a").await?;
                    assert!(reading.is_valid() && writing.is_valid());
                    assert_eq!(writing.mode(), ylock_core::Mode::Write);
                    Ok::<_, Error>(run)
                }
            };
            client.two_phase_locking(upgrade).await
        }
    });
    let ends = within(fixture.lapse() * 2, "both end", join_all(grown)).await;
    let runs: Vec<_> = ends.into_iter().map(|run| run.unwrap()).collect();
    assert_eq!(runs, [1, 1], "each has read, and begun anew to write");
    clients[0].become_free(&["a"]).await;
}

/// An error of the closure ends it, and all is given back when it is returned.
pub async fn an_error_of_the_closure_gives_all_back(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    let (runs, group) = (AtomicUsize::new(0), fixture.group());
    let grown = here.two_phase_locking(|taking| {
        runs.fetch_add(1, Ordering::SeqCst);
        let group = group.clone();
        async move {
            taking.write(group.clone(), "a").await?;
            taking.write(group.clone(), "b").await?;
            Err::<(), _>(Own)
        }
    });
    let Own = within(fixture.soon() * 2, "it ends", grown).await.unwrap_err();
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    assert!(there.is_free("a").await && there.is_free("b").await, "it was given back before the error came");
}

/// A lock that is lost stops the closure, which does not run again, and the error says which lock.
pub async fn a_lock_that_is_lost_stops_the_closure(fixture: Fixture) {
    let (here, there) = (fixture.short_lived().await, fixture.client().await);
    let (runs, began) = (Arc::new(AtomicUsize::new(0)), Arc::new(Barrier::new(2)));
    let (group, counts, begins) = (fixture.group(), Arc::clone(&runs), Arc::clone(&began));
    let grown = tokio::spawn(async move {
        let work = |taking: TwoPhaseLocking| {
            counts.fetch_add(1, Ordering::SeqCst);
            let (group, begins) = (group.clone(), Arc::clone(&begins));
            async move {
                taking.write(group.clone(), "a").await?;
                taking.write(group.clone(), "b").await?;
                begins.wait().await;
                pending::<Result<()>>().await
            }
        };
        here.two_phase_locking(work).await
    });
    within(fixture.soon() * 2, "it has all", began.wait()).await;
    there.revoke(fixture.group(), "b").await.unwrap();
    let error = within(fixture.lapse(), "it is stopped", grown).await.unwrap().unwrap_err();
    let lost = Key::new(fixture.group(), "b").unwrap();
    assert_eq!((error.kind(), error.key()), (ErrorKind::Lost, Some(&lost)));
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    there.become_free(&["a", "b"]).await;
}

/// Clients that take the same locks in opposite orders, one after the other, all come to an end.
pub async fn sets_that_grow_in_opposite_orders_end(fixture: Fixture) {
    const NAMES: [&str; 3] = ["a", "b", "c"];
    let clients = fixture.clients(8).await;
    let inside: Arc<Vec<_>> = Arc::new(NAMES.iter().map(|_| AtomicUsize::new(0)).collect());
    let (rounds, most) = ((fixture.harness().rounds() / 50).max(2), Arc::new(AtomicUsize::new(0)));
    let tasks = clients.iter().enumerate().map(|(number, client)| {
        let (client, inside, most, group) =
            (client.clone(), Arc::clone(&inside), Arc::clone(&most), fixture.group());
        let order: Vec<_> =
            (0..NAMES.len()).map(|place| (place * (1 + number % 2) + number) % NAMES.len()).collect();
        tokio::spawn(async move {
            for _ in 0..rounds {
                let mut runs = 0;
                let grown = client.two_phase_locking(|taking| {
                    runs += 1;
                    let (inside, order, group) = (Arc::clone(&inside), order.clone(), group.clone());
                    async move {
                        for place in &order {
                            taking.write(group.clone(), NAMES[*place]).await?;
                        }
                        for place in &order {
                            assert_eq!(inside[*place].fetch_add(1, Ordering::SeqCst), 0, "two are inside");
                            tokio::task::yield_now().await;
                            inside[*place].fetch_sub(1, Ordering::SeqCst);
                        }
                        Ok::<_, Error>(())
                    }
                });
                grown.await.unwrap();
                most.fetch_max(runs, Ordering::SeqCst);
            }
        })
    });
    let tasks: Vec<_> = tasks.collect();
    for ended in fixture.to_its_end("all end", join_all(tasks)).await {
        ended.unwrap();
    }
    // A run adds a lock to those that the next one begins with.
    assert!(most.load(Ordering::SeqCst) <= 1 + NAMES.len(), "{most:?} runs of one closure");
}

/// `two_phase_locking` can be dropped after any poll, whatever the closure is at, and in its second run.
pub async fn a_set_that_grows_is_dropped_after_any_poll(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    for holds in [false, true] {
        for polls in 1..=ENOUGH {
            let held =
                if holds { Some(there.lock(fixture.group(), "a").write().await.unwrap()) } else { None };
            // Late enough for the closure to run again and to wait.
            let leaves = async {
                for _ in 0..8 {
                    tokio::task::yield_now().await;
                }
                drop(held);
            };
            let (ended, ()) = tokio::join!(poll_times(polls, three_out_of_order(&here)), leaves);
            there.become_free(&["a", "b", "c"]).await;
            if ended.map(Result::unwrap).is_some() {
                break;
            }
            assert!(polls < ENOUGH, "it never ends");
        }
    }
}

fn three_out_of_order(client: &Client) -> impl Future<Output = Result<()>> {
    let group = client.fixture().group();
    client.two_phase_locking(move |taking| {
        let group = group.clone();
        async move {
            for name in ["b", "a", "c"] {
                taking.write(group.clone(), name).await?;
                tokio::task::yield_now().await;
            }
            Ok(())
        }
    })
}

/// A handle that is kept for longer than the closure runs keeps no lock and takes none, also where it was just waiting for one.
pub async fn a_handle_that_is_kept_takes_nothing(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    let (kept, group) = (Mutex::new(None), fixture.group());
    let grown = here.two_phase_locking(|taking| {
        *kept.lock() = Some(taking.clone());
        let group = group.clone();
        async move { taking.write(group, "a").await.map(drop) }
    });
    within(fixture.soon(), "it ends", grown).await.unwrap();
    there.become_free(&["a"]).await;
    let kept = kept.lock().take().unwrap();
    let error = kept.write(fixture.group(), "a").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);

    // One that waits in a task of its own when the closure ends.
    let held = there.lock(fixture.group(), "b").write().await.unwrap();
    let (waits, group, owner) = (Mutex::new(None), fixture.group(), Owner::new());
    let grown = owner.scope(here.two_phase_locking(|taking| {
        let group = group.clone();
        *waits.lock() = Some(tokio::spawn(async move { taking.write(group, "b").await.map(drop) }));
        let here = &here;
        async move {
            seen_waiting(owner, "b", here).await;
            Ok::<_, Error>(())
        }
    }));
    within(fixture.lapse(), "it ends", grown).await.unwrap();
    drop(held);
    let waits = waits.lock().take().unwrap();
    let error = within(fixture.lapse(), "it is told", waits).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    there.become_free(&["b"]).await;
}
