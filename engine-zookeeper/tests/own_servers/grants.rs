//! How far a grant may be relied on, asked of the engine itself.

use std::cell::Cell;
use std::time::Duration;

use ylock_core::engine::{AcquisitionId, Engine, Grant, Patience, Request, valid_until};
use ylock_core::url::Host;
use ylock_core::{ClientName, ErrorKind, Key, LossReason, Mode, Owner};
use ylock_engine_zookeeper::ZookeeperEngine;
use ylock_testkit::{poll_times, quiet_time};

use super::own_server::OwnServer;
use super::server::proxy::{Link, Proxy, What};
use super::{LEASE, LOCK, LONG, SESSION, client, contenders, options, until, waiters, within};

pub(super) fn request(engine: &ZookeeperEngine, lease: Duration) -> Request {
    let (key, id) = (Key::new("users", "alice").unwrap(), AcquisitionId::new(&*engine.environment()));
    Request::new(key, id, Mode::Write, Owner::new(), ClientName::default(), lease)
}

/// Asks until the lock is granted, as a caller does to whom an engine says that its server did not answer: that server may have.
async fn granted(engine: &ZookeeperEngine, request: &Request) -> Grant {
    loop {
        match engine.acquire(request).await {
            Ok(grant) => return grant.expect("a call without a time limit ends with a grant"),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}"),
        }
    }
}

/// The rest of the session is for clocks that differ, and for the servers to hear of its signs of life.
#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn no_lease_is_longer_than_five_sixths_of_the_session() {
    let server = OwnServer::start().await;
    let engine = ZookeeperEngine::connect(&options(vec![server.host()])).await.unwrap();
    for lease in [SESSION, SESSION * 10] {
        let request = request(&engine, lease);
        let grant = within("granted", engine.acquire(&request)).await.unwrap().unwrap();
        assert_eq!(grant.lease, SESSION * 5 / 6);
        engine.release(&grant.key, grant.id, None).await.unwrap();
    }
    engine.close().await.unwrap();
}

/// A server that has lost its leader goes on answering reads. Here the server answers nothing but reads and the driver's own signs of life.
#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn only_a_write_is_a_heartbeat() {
    let server = OwnServer::start().await;
    let proxy = Proxy::before(&[server.host()]).await;
    let here = client(proxy.hosts()).await;
    let guard = here.locks("users").write("alice").await.unwrap();
    let since = quiet_time();
    proxy.set(Link::Beatless);
    let answered = Cell::new(0);
    let looks = async {
        loop {
            // On a busy machine one of them may be late.
            if here.inspect("users", "alice").await.is_ok() {
                answered.set(answered.get() + 1);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let reason = tokio::select! {
        reason = within("the holder is told", guard.lost()) => reason,
        () = looks => unreachable!(),
    };
    assert_eq!(reason, LossReason::Lapsed);
    assert!(answered.get() > 5, "reads go on: {}", answered.get());
    let took = quiet_time() - since;
    assert!(took < SESSION, "{took:?}");
}

/// The session was confirmed last too long ago: a lease that counts from then is over.
#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn who_is_let_in_without_a_heartbeat_waits_for_one() {
    let server = OwnServer::start().await;
    let proxy = Proxy::before(&[server.host()]).await;
    let there = client(vec![server.host()]).await;
    let engine = ZookeeperEngine::connect(&options(proxy.hosts())).await.unwrap();
    let guard = there.locks("users").write("alice").await.unwrap();
    let request = request(&engine, LEASE);
    let waits = granted(&engine, &request);
    tokio::pin!(waits);
    let queued = until("it waits", async || waiters(&there).await == 1);
    tokio::select! {
        _ = &mut waits => panic!("two clients are inside"),
        () = queued => {}
    }
    proxy.set(Link::Beatless);
    let a_while = tokio::time::timeout(SESSION * 39 / 50, &mut waits).await;
    assert!(a_while.is_err());
    // Reads are answered, and prove nothing.
    engine.inspect(&request.key).await.unwrap();
    assert!(guard.unlock().await.unwrap().is_released());
    // Long enough for a heartbeat that fails, and a look after it; and over before the client makes another session.
    let a_moment = tokio::time::timeout(SESSION * 2 / 5, &mut waits).await;
    assert!(a_moment.is_err(), "it believes to be inside: {a_moment:?}");
    proxy.set(Link::Open);
    let grant = within("it gets in", waits).await;
    assert!(engine.environment().now() < valid_until(grant.sent, grant.lease));
    engine.release(&grant.key, grant.id, None).await.unwrap();
}

/// A caller asks for the same request again, in whatever runtime: the acquisition goes on where it stood.
#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn an_acquisition_that_is_asked_for_again_has_its_old_place() {
    let server = OwnServer::start().await;
    let there = client(vec![server.host()]).await;
    let engine = ZookeeperEngine::connect(&options(vec![server.host()])).await.unwrap();
    let guard = there.locks("users").write("alice").await.unwrap();
    let request = request(&engine, LEASE);
    let mut places = Vec::new();
    for _ in 0..3 {
        let queued = until("it waits", async || waiters(&there).await == 1);
        tokio::select! {
            _ = engine.acquire(&request) => panic!("two clients are inside"),
            () = queued => {}
        }
        places.push(contenders(&[server.host()], LOCK).await.len());
    }
    assert_eq!(places, [2; 3]);
    drop(guard);
    let grant = within("it gets in", engine.acquire(&request)).await.unwrap().unwrap();
    engine.release(&grant.key, grant.id, None).await.unwrap();
}

/// No caller asks for the release again: what is left of the acquisition is removed in the background, and forgotten.
#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn a_release_that_is_dropped_after_any_poll_is_done_all_the_same() {
    let server = OwnServer::start().await;
    // Sessions of a minute: nothing gets free by their end. Nor does the cleaner remove anything by itself before some such requests could have failed.
    let patient = options(vec![server.host()]).with_lease(LONG);
    let patient = patient.with_request_timeout(LONG_ENOUGH);
    let engine = ZookeeperEngine::connect(&patient).await.unwrap();
    let behind = ZookeeperEngine::connect(&patient).await.unwrap();
    for polls in 1..8 {
        let request = request(&engine, LONG);
        let grant = within("granted", engine.acquire(&request)).await.unwrap().unwrap();
        drop(poll_times(polls, engine.release(&grant.key, grant.id, None)).await);
        let next = super::grants::request(&behind, LONG);
        let next = within("it is given back", behind.acquire(&next)).await.unwrap().unwrap();
        behind.release(&next.key, next.id, None).await.unwrap();
        until("it is forgotten", async || engine.in_memory().iter().all(|(_, count)| *count == 0)).await;
    }
}

/// The call before was dropped with its runtime: what it has left is the place of the one that goes on.
#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn a_try_goes_on_after_its_future_was_dropped() {
    let server = OwnServer::start().await;
    let engine = warm(vec![server.host()]).await;
    for polls in 1.. {
        let request = request(&engine, LONG).with_patience(Patience::Try);
        let cut = poll_times(polls, engine.acquire(&request)).await;
        let is_over = cut.is_some();
        let again = match cut {
            Some(answer) => answer,
            None => within("it is answered", engine.acquire(&request)).await,
        };
        let grant = again.unwrap().unwrap_or_else(|| panic!("after {polls} polls: no other wants it"));
        engine.release(&grant.key, grant.id, None).await.unwrap();
        if is_over {
            break;
        }
    }
}

/// For a request that is kept back, also on a busy machine.
const LONG_ENOUGH: Duration = Duration::from_secs(10);

/// A client whose session has lasted for a while, with a lock that was in use before: the nodes above it are there.
async fn warm(hosts: Vec<Host>) -> ZookeeperEngine {
    let patient = options(hosts).with_lease(LONG).with_request_timeout(LONG_ENOUGH);
    let engine = ZookeeperEngine::connect(&patient).await.unwrap();
    let request = request(&engine, LONG);
    let grant = within("granted", engine.acquire(&request)).await.unwrap().unwrap();
    engine.release(&grant.key, grant.id, None).await.unwrap();
    engine
}

/// The server may have made the node long before the answer comes.
#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn a_grant_counts_from_before_its_node_was_asked_for() {
    let server = OwnServer::start().await;
    let proxy = Proxy::before(&[server.host()]).await;
    let engine = warm(proxy.hosts()).await;
    let environment = engine.environment();
    let request = request(&engine, LONG);
    proxy.set(Link::Held(What::Transactions));
    let asked = environment.now();
    let opens = async {
        until("it is on its way", async || proxy.kept() == 1).await;
        let opened = environment.now();
        proxy.set(Link::Open);
        opened
    };
    let (granted, opened) = tokio::join!(within("granted", engine.acquire(&request)), opens);
    let sent = granted.unwrap().unwrap().sent;
    assert!(asked < sent && sent < opened, "{asked:?} {sent:?} {opened:?}");
    engine.close().await.unwrap();
}

/// Nothing but the session was confirmed yet: the answer about the node got lost, and the node was found by asking what there is.
#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn the_first_grant_of_a_session_counts_from_before_that_was_asked_for() {
    let server = OwnServer::start().await;
    let other = warm(vec![server.host()]).await;
    let proxy = Proxy::before(&[server.host()]).await;
    let environment = other.environment();
    let patient = options(proxy.hosts()).with_lease(LONG);
    proxy.set(Link::Held(What::Anything));
    let connecting = tokio::spawn(async move { ZookeeperEngine::connect(&patient).await.unwrap() });
    until("a session is asked for", async || proxy.kept() == 1).await;
    let opened = environment.now();
    proxy.set(Link::Open);
    let engine = within("it begins", connecting).await.unwrap();
    let request = request(&engine, LONG);
    proxy.set(Link::Deaf);
    let loses_the_answer = async {
        until("its node is there", async || contenders(&[server.host()], LOCK).await.len() == 1).await;
        proxy.set(Link::Cut);
        until("the line is down", async || contenders(&[server.host()], LOCK).await.len() == 1).await;
        proxy.set(Link::Open);
    };
    let (granted, ()) = tokio::join!(within("granted", engine.acquire(&request)), loses_the_answer);
    let sent = granted.unwrap().unwrap().sent;
    assert!(sent < opened, "{sent:?} {opened:?}");
    engine.close().await.unwrap();
}
