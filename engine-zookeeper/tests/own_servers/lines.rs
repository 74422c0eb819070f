//! Lines that are cut, and servers that are killed.

use std::time::Duration;
use std::time::Instant;

use ylock_core::url::Host;
use ylock_core::{ErrorKind, Fairness, LossReason, Options, Ylock};
use ylock_testkit::quiet_time;

use super::own_server::OwnServer;
use super::server::proxy::{Link, Proxy};
use super::{
    LEASE, LOCK, LONG, SESSION, client, contenders, queue_up, queue_up_again, thief, until, waiters, within,
};

#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn a_line_that_is_cut_for_less_than_the_session_costs_nothing() {
    let server = OwnServer::start().await;
    for line in [Link::Cut, Link::Dead] {
        let proxy = Proxy::before(&[server.host()]).await;
        let (here, there) = (client(proxy.hosts()).await, client(vec![server.host()]).await);
        let guard = here.locks("users").write("alice").await.unwrap();
        let bob = there.locks("users").write("bob").await.unwrap();
        let locks = here.locks("users");
        let waiting = tokio::spawn(async move { locks.write("bob").await.unwrap() });
        until("it waits", async || {
            there.inspect("users", "bob").await.is_ok_and(|seen| seen.queue.len() == 1)
        })
        .await;
        let place = there.inspect("users", "bob").await.unwrap().queue[0].id;
        proxy.set(line);
        tokio::time::sleep(SESSION / 4).await;
        proxy.set(Link::Cut);
        proxy.set(Link::Open);
        tokio::time::sleep(LEASE).await;
        assert!(guard.is_valid(), "{line:?}");
        assert_eq!(there.inspect("users", "bob").await.unwrap().queue[0].id, place);
        drop(bob);
        drop(within("the waiter gets in", waiting).await.unwrap());
        assert!(within("given back", guard.unlock()).await.unwrap().is_released());
    }
}

#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn a_line_that_is_cut_for_more_than_the_session_is_told_before_somebody_else_gets_in() {
    let server = OwnServer::start().await;
    for line in [Link::Cut, Link::Dead, Link::Deaf] {
        let proxy = Proxy::before(&[server.host()]).await;
        let (here, there) = (client(proxy.hosts()).await, client(vec![server.host()]).await);
        let guard = here.locks("users").write("alice").await.unwrap();
        let others = [
            here.locks("users").write("carol").await.unwrap(),
            here.locks("users").read("dave").await.unwrap(),
        ];
        let token = guard.token();
        let waiting = queue_up(&there, &there).await;
        proxy.set(line);
        let reason = within("the holder is told", guard.lost()).await;
        assert!(!waiting.is_finished(), "{line:?}: another one is inside already");
        assert_eq!(reason, LossReason::Lapsed);
        let (told, quiet_told) = (Instant::now(), quiet_time());
        for other in others {
            within("all are told", other.lost()).await;
        }
        let took = quiet_time() - quiet_told;
        assert!(took < LEASE / 3, "{line:?}: all at once, not after {took:?}");
        let next = within("the waiter gets in", waiting).await.unwrap();
        assert!(told.elapsed() > Duration::from_millis(100), "{line:?}: only just before");
        assert!(next.token() > token);
        // Back again: a new session, which begins with nothing.
        proxy.set(Link::Cut);
        proxy.set(Link::Open);
        let again = queue_up_again(&here, &there).await;
        assert!(next.is_valid() && !again.is_finished());
        drop(next);
        drop(within("it gets in again", again).await.unwrap());
        until("nothing is left", async || contenders(&[server.host()], LOCK).await.is_empty()).await;
    }
}

/// A waiter takes a place again, under a new session.
#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn one_who_waits_queues_again_after_the_loss_of_its_session() {
    let server = OwnServer::start().await;
    let (own, other) = (Proxy::before(&[server.host()]).await, client(vec![server.host()]).await);
    let (here, thief) = (client(own.hosts()).await, thief::Thief::before(&server.host()).await);
    let robbed = client(vec![thief.host()]).await;
    let guard = other.locks("users").write("alice").await.unwrap();
    let waiting = [queue_up(&here, &other).await, queue_up(&robbed, &other).await];
    let before = other.inspect("users", "alice").await.unwrap().queue[1].since;
    thief.close_the_session().await;
    until("it queues again", async || {
        let queue = other.inspect("users", "alice").await.unwrap().queue;
        queue.len() == 2 && queue[1].since > before
    })
    .await;
    drop(guard);
    for waiting in waiting {
        drop(within("it gets in", waiting).await.unwrap());
    }
}

#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn a_session_that_the_administrator_closed_is_lost_at_once_for_the_next_renewal() {
    let server = OwnServer::start().await;
    let thief = thief::Thief::before(&server.host()).await;
    let (here, there) = (client(vec![thief.host()]).await, client(vec![server.host()]).await);
    let guard = here.locks("users").write("alice").await.unwrap();
    thief.close_the_session().await;
    let reason = within("the holder is told", guard.lost()).await;
    assert_eq!(reason, LossReason::Gone, "and not only when its lease has ended");
    drop(within("another one gets in", there.locks("users").write("alice")).await.unwrap());
    drop(within("so does this one, in a new session", here.locks("users").write("alice")).await.unwrap());
}

/// The node is there and its client does not know: the node is found by the identity in its name, and there is only one.
#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn a_node_whose_answer_got_lost_is_found_again_and_never_doubled() {
    let server = OwnServer::start().await;
    let proxy = Proxy::before(&[server.host()]).await;
    let (here, there) = (client(proxy.hosts()).await, client(vec![server.host()]).await);
    // So that the nodes above are there: the answer that gets lost must not be the one about those.
    assert!(there.locks("users").write("alice").await.unwrap().unlock().await.unwrap().is_released());
    let hosts = [server.host()];
    for _ in 0..3 {
        proxy.set(Link::Deaf);
        let locks = here.locks("users");
        let waiting = tokio::spawn(async move { locks.write("alice").await.unwrap() });
        until("its node is there", async || contenders(&hosts, LOCK).await.len() == 1).await;
        proxy.set(Link::Cut);
        let known = contenders(&hosts, LOCK).await;
        proxy.set(Link::Open);
        let guard = within("it gets in", waiting).await.unwrap();
        assert_eq!(contenders(&hosts, LOCK).await, known, "the same node and no other");
        assert!(within("given back", guard.unlock()).await.unwrap().is_released());
        assert!(contenders(&hosts, LOCK).await.is_empty());
    }
}

/// The place is that which the next waiter of a client took when the holder before it left.
#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn a_place_whose_answer_got_lost_is_found_again_and_never_doubled() {
    let server = OwnServer::start().await;
    let proxy = Proxy::before(&[server.host()]).await;
    let here = client(proxy.hosts()).await;
    let strict = Options::default().with_lease(LEASE).with_fairness(Fairness::Strict);
    let lock = here.lock("users", "alice").with_options(strict);
    let hosts = [server.host()];
    let mut guard = lock.write().await.unwrap();
    for _ in 0..3 {
        let waiting = tokio::spawn({
            let lock = lock.clone();
            async move { lock.write().await.unwrap() }
        });
        until("it waits", async || waiters(&here).await == 1).await;
        let before = contenders(&hosts, LOCK).await;
        proxy.set(Link::Deaf);
        let token = guard.token();
        drop(guard);
        until("its node is there", async || contenders(&hosts, LOCK).await != before).await;
        proxy.set(Link::Cut);
        let known = contenders(&hosts, LOCK).await;
        proxy.set(Link::Open);
        guard = within("it gets in", waiting).await.unwrap();
        assert_eq!((contenders(&hosts, LOCK).await, known.len()), (known, 1), "the same node and no other");
        assert!(guard.token() > token);
    }
}

/// Its session lasts for a minute: nothing gets free by its end.
async fn patient(hosts: Vec<Host>) -> Ylock {
    super::client_with(super::options(hosts).with_lease(LONG)).await
}

/// What was made is removed in the background, once the server can be reached again.
#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn what_was_made_for_a_caller_who_has_gone_is_removed() {
    let server = OwnServer::start().await;
    let proxy = Proxy::before(&[server.host()]).await;
    let here = patient(proxy.hosts()).await;
    assert!(here.locks("users").write("alice").await.unwrap().unlock().await.unwrap().is_released());
    proxy.set(Link::Deaf);
    let locks = here.locks("users");
    let waiting = tokio::spawn(async move { locks.write("alice").await });
    let hosts = [server.host()];
    until("its node is there", async || contenders(&hosts, LOCK).await.len() == 1).await;
    waiting.abort();
    proxy.set(Link::Cut);
    proxy.set(Link::Open);
    until("it is removed", async || contenders(&hosts, LOCK).await.is_empty()).await;
}

#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn a_release_that_was_cut_off_is_done_when_the_line_is_back() {
    let server = OwnServer::start().await;
    let proxy = Proxy::before(&[server.host()]).await;
    let (here, there) = (patient(proxy.hosts()).await, client(vec![server.host()]).await);
    let guard = here.locks("users").write("alice").await.unwrap();
    let waiting = queue_up(&there, &there).await;
    proxy.set(Link::Dead);
    drop(guard);
    tokio::time::sleep(SESSION / 3).await;
    assert!(!waiting.is_finished());
    proxy.set(Link::Cut);
    proxy.set(Link::Open);
    drop(within("the next one gets in", waiting).await.unwrap());
}

#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn a_server_that_was_killed_and_comes_back_keeps_locks_and_queue() {
    let mut server = OwnServer::start().await;
    let hosts = vec![server.host()];
    // A server that starts takes its time on a busy machine.
    let long = |hosts| super::options(hosts).with_lease(LONG);
    let (one, two) = (super::client_with(long(hosts.clone())).await, super::client_with(long(hosts)).await);
    let guard = one.locks("users").write("alice").await.unwrap();
    let waiting = queue_up(&two, &one).await;
    server.kill();
    server.start_again().await;
    until("the clients are back", async || waiters(&one).await == 1).await;
    assert!(guard.is_valid() && !waiting.is_finished());
    let token = guard.token();
    assert!(within("given back", guard.unlock()).await.unwrap().is_released());
    assert!(within("the next one gets in", waiting).await.unwrap().token() > token);
}

#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn a_server_that_is_gone_is_told_within_a_lease() {
    let mut server = OwnServer::start().await;
    let ylock = client(vec![server.host()]).await;
    let guard = ylock.locks("users").write("alice").await.unwrap();
    server.kill();
    let since = quiet_time();
    let error = within("the waiter is told", ylock.locks("users").write("bob")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    let took = quiet_time() - since;
    assert!(took < LEASE * 2, "{took:?}");
    assert_eq!(within("the holder is told", guard.lost()).await, LossReason::Lapsed);
}

/// A server that comes back could not take so many connections at once.
#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn very_many_waiters_do_not_storm_a_server_that_is_gone() {
    let mut server = OwnServer::start().await;
    let ylock = client(vec![server.host()]).await;
    let address = (server.host().name, server.host().port.unwrap());
    server.kill();
    let nobody = tokio::net::TcpListener::bind(address).await.unwrap();
    let waiters: Vec<_> = (0..500)
        .map(|name| {
            let locks = ylock.locks("users");
            tokio::spawn(async move { locks.write(name.to_string()).await.map(drop) })
        })
        .collect();
    // Also when the session is over and another one is wanted.
    let (time, mut tried) = (SESSION * 2, 0);
    let counting = async {
        while let Ok((stream, _)) = nobody.accept().await {
            drop(stream);
            tried += 1;
        }
    };
    assert!(tokio::time::timeout(time, counting).await.is_err());
    assert!((3..200).contains(&tried), "{tried} connections in {time:?}");
    for waiter in waiters {
        waiter.abort();
    }
}
