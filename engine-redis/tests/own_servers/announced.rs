//! Waiters that stand behind a holder of their own client until it leaves.

use std::time::{Duration, Instant};

use ylock_core::engine::{Engine, Grant, Holding, Patience, Renewal, Request, valid_until};
use ylock_core::{Mode, Options};
use ylock_engine_redis::RedisEngine;

use super::own_server::{Disk, OwnServer};
use super::schedules::{Copies, acquire, engine, release, request, send};
use super::{client, until, within};

const SHORT: Duration = Duration::from_secs(4);
const LONG: Duration = Duration::from_secs(16);

async fn renew(engine: &RedisEngine, grant: &Grant, next: Option<&Request>) {
    let holding = Holding::new(grant.clone(), next.cloned());
    let answer = engine.renew(&[holding]).await.remove(0).unwrap();
    assert!(matches!(answer, Renewal::Renewed { .. }), "{answer:?}");
}

/// The client believes in the lease that the waiter asked for, and not in that of the holder that the waiter stood behind.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn an_announced_waiter_is_let_in_for_its_own_lease() {
    for (of_holder, own) in [(SHORT, LONG), (LONG, SHORT)] {
        let server = OwnServer::start(Disk::Nothing).await;
        let (one, two) = (engine(&server, SHORT).await, engine(&server, LONG).await);
        let (first, next) = (request(&one, Mode::Read, of_holder), request(&one, Mode::Write, own));
        let other = request(&two, Mode::Read, LONG);
        let held = acquire(&one, &first).await;
        acquire(&two, &other).await;
        renew(&one, &held, Some(&next)).await;
        release(&one, &first, Some(&next)).await;
        let mut waiting = std::pin::pin!(one.acquire(&next));
        assert!(tokio::time::timeout(SHORT / 4, &mut waiting).await.is_err(), "it waits");
        release(&two, &other, None).await;
        let mine = within("it gets in", waiting).await.unwrap().expect("granted");
        let theirs = acquire(&two, &request(&two, Mode::Write, LONG)).await;
        let (now, end) = (two.environment().now(), valid_until(mine.sent, mine.lease));
        assert!(end <= now, "two hold for {:?}", end.since(now));
        assert!(now < end.plus(own), "a lease of {of_holder:?} was waited for, and not of {own:?}");
        assert!(now < valid_until(theirs.sent, theirs.lease));
    }
}

/// As above, seen by the guards that users hold.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_writer_with_a_long_lease_that_waited_behind_a_reader_with_a_short_one_is_alone() {
    let server = OwnServer::start(Disk::Nothing).await;
    let (one, two) = (client(&server, SHORT).await, client(&server, LONG).await);
    let reader = one.locks("users").read("alice").await.unwrap();
    let other = two.locks("users").read("alice").await.unwrap();
    let locks = one.locks("users").with_options(Options::default().with_lease(LONG));
    let waiting = tokio::spawn(async move { locks.write("alice").await.unwrap() });
    until("it is announced", async || super::waiters(&two).await == 1).await;
    assert!(within("given back", reader.unlock()).await.unwrap().is_released());
    assert!(within("given back", other.unlock()).await.unwrap().is_released());
    let writer = within("it gets in", waiting).await.unwrap();
    let since = Instant::now();
    while since.elapsed() < SHORT * 2 {
        let tried = two.locks("users").write("alice").now().await.unwrap();
        assert!(tried.is_none() || !writer.is_valid(), "two hold after {:?}", since.elapsed());
        tokio::time::sleep(SHORT / 20).await;
    }
}

/// The time between two renewals of the holder may be longer than the waiter's own lease.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn an_announced_waiter_keeps_its_place_for_as_long_as_the_grant_that_it_stands_behind() {
    let server = OwnServer::start(Disk::Nothing).await;
    let (one, two) = (engine(&server, SHORT).await, engine(&server, LONG).await);
    let (first, next) = (request(&one, Mode::Read, LONG), request(&one, Mode::Write, SHORT));
    let held = acquire(&one, &first).await;
    renew(&one, &held, Some(&next)).await;
    let mut tries = request(&two, Mode::Read, LONG);
    tries.patience = Patience::Try;
    let since = Instant::now();
    while since.elapsed() < SHORT * 2 {
        assert!(two.acquire(&tries).await.unwrap().is_none(), "after {:?}", since.elapsed());
        tokio::time::sleep(SHORT / 10).await;
    }
    release(&one, &first, None).await;
    acquire(&two, &request(&two, Mode::Read, LONG)).await;
}

/// The copy is of a renewal that was sent before the writer became a reader.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_late_copy_of_a_renewal_does_not_show_a_writer_that_has_become_a_reader() {
    let server = OwnServer::start(Disk::Nothing).await;
    let (one, two) = (engine(&server, LONG).await, engine(&server, LONG).await);
    let (first, other) = (request(&one, Mode::Write, LONG), request(&two, Mode::Read, LONG));
    let mut held = acquire(&one, &first).await;
    let mut copies = Copies::of(&server).await;
    renew(&one, &held, None).await;
    let seen = copies.at_least(1).await;
    held.mode = Mode::Read;
    renew(&one, &held, None).await;
    acquire(&two, &other).await;
    for words in &seen {
        send(&server, words).await;
    }
    let shown = two.inspect(&other.key).await.unwrap();
    let readers = shown.holders.iter().filter(|holder| holder.mode == Mode::Read).count();
    assert_eq!((readers, shown.holders.len()), (2, 2), "{shown:?}");
}
