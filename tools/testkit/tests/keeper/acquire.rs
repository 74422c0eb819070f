//! An acquisition as a value: what it is told before it is awaited, and what it is told too late.
#![allow(clippy::disallowed_methods, reason = "its tasks and its time are those of a program")]

use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use ylock_core::{Acquire, ErrorKind, Guard, LossReason, Owner, TryAcquire, Ylock};
use ylock_testkit::poll_once;

const LONG: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn nothing_is_acquired_before_it_is_polled() {
    let users = Ylock::in_memory().locks("users");
    let unused: Acquire<Guard> = users.write("alice");
    assert!(users.write("alice").now().await.unwrap().is_some());
    drop(unused);
}

/// It is a value like others: kept in a collection, sent to a task, awaited by reference.
#[tokio::test]
async fn an_acquisition_outlives_the_locks_that_made_it() {
    let ylock = Ylock::in_memory();
    let mut all: FuturesUnordered<Acquire<Guard>> =
        ["alice", "bob"].map(|name| ylock.locks("users").write(name)).into_iter().collect();
    let mut names = Vec::new();
    while let Some(guard) = all.next().await {
        names.push(guard.unwrap().key().name().to_owned());
    }
    names.sort();
    assert_eq!(names, ["alice", "bob"]);
    assert!(tokio::spawn(ylock.lock("users", "carol").write().now()).await.unwrap().unwrap().is_some());
    let mut waiting = ylock.lock("users", "dave").write();
    assert!((&mut waiting).await.unwrap().is_valid());
}

#[tokio::test]
async fn one_that_was_polled_is_told_no_more() {
    let users = Ylock::in_memory().locks("users");
    let held = users.write("alice").await.unwrap();
    #[allow(clippy::async_yields_async, reason = "it is told more, and not awaited")]
    let polled = || async {
        let mut waiting = users.write("alice");
        assert!(poll_once(std::pin::Pin::new(&mut waiting)).await.is_none());
        waiting
    };
    let kind = |error: ylock_core::Error| error.kind();
    assert_eq!(polled().await.now().await.map_err(kind).unwrap_err(), ErrorKind::Invalid);
    assert_eq!(polled().await.within(LONG).await.map_err(kind).unwrap_err(), ErrorKind::Invalid);
    assert_eq!(polled().await.owned_by(&held.owner()).await.map_err(kind).unwrap_err(), ErrorKind::Invalid);
    assert_eq!(polled().await.run(async |_| ()).await.map_err(kind).unwrap_err(), ErrorKind::Invalid);
    let mut tried: TryAcquire<Guard> = users.write("alice").within(LONG);
    assert!(poll_once(std::pin::Pin::new(&mut tried)).await.is_none());
    assert_eq!(tried.run(async |_| ()).await.map_err(kind).unwrap_err(), ErrorKind::Invalid);
    drop(held);
    assert!(users.write("alice").now().await.unwrap().is_some(), "none of them waits on");
}

#[tokio::test(start_paused = true)]
async fn one_acquisition_has_terms_of_its_own() {
    let users = Ylock::in_memory().locks("users");
    let me = Owner::new();
    let guard = users.write("alice").owned_by(&me).with_lease(LONG).await.unwrap();
    assert!(guard.owner() == me && guard.remaining() > LONG / 2);
    assert!(users.write("alice").owned_by(&me).now().await.unwrap().is_some());
    let short = users.write("bob").with_max_hold(Duration::from_secs(5)).await.unwrap();
    assert_eq!(short.lost().await, LossReason::HeldTooLong);
    let error = users.write("carol").with_lease(Duration::ZERO).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
}

/// Also for what had no such method before: readers, permits, sets and the lead.
#[tokio::test(start_paused = true)]
async fn everything_that_is_acquired_can_be_tried_bounded_and_worked_under() {
    let ylock = Ylock::in_memory();
    let locks = ylock.locks("group");
    let (semaphore, election) = (locks.semaphore("few", 1), locks.election("lead"));
    let set = || ylock.multi_lock().write("group", "a").write("group", "b");
    let all = (
        locks.write("read").await.unwrap(),
        semaphore.acquire().await.unwrap(),
        election.campaign().await.unwrap(),
        set().acquire().await.unwrap(),
    );
    let time = Duration::from_secs(1);
    let no_work = async |_| panic!("no work");
    assert!(locks.read("read").now().run(no_work).await.unwrap().is_none());
    assert!(semaphore.acquire().within(time).run(async |_| panic!("no work")).await.unwrap().is_none());
    assert!(election.campaign().now().await.unwrap().is_none());
    assert!(election.campaign().within(time).run(async |_| panic!("no work")).await.unwrap().is_none());
    assert!(set().acquire().now().run(async |_| panic!("no work")).await.unwrap().is_none());
    drop(all);
    assert_eq!(
        locks.read("read").within(time).run(async |lease| lease.is_valid()).await.unwrap(),
        Some(true)
    );
    assert_eq!(semaphore.acquire().now().run(async |permit| permit.number()).await.unwrap(), Some(1));
    assert_eq!(
        election.campaign().within(time).run(async |lease| lease.is_valid()).await.unwrap(),
        Some(true)
    );
    assert_eq!(set().acquire().within(time).run(async |leases| leases.len()).await.unwrap(), Some(2));
}
