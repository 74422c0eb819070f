//! What is promised when the server's clock is set, forwards and backwards.

use std::time::{Duration, Instant};

use tokio::task::JoinHandle;
use ylock_core::engine::{Engine, Grant, Holding, LossReason, Release, Renewal};
use ylock_core::{Fairness, Guard, Mode, Options, Unlocked, Ylock};
use ylock_engine_redis::RedisEngine;
use ylock_engine_redis::options::Notify;
use ylock_testkit::quiet_time;

use super::super::own_server::OwnServer;
use super::super::{LOCKS, client, joins, one_holds_and_another_waits, until, waiters, within};
use super::{HOUR, SetServer, request};

/// Long enough for a busy machine to renew in time, and short enough to wait for.
const LEASE: Duration = Duration::from_secs(3);

async fn engine(server: &OwnServer, notify: Notify) -> RedisEngine {
    let options = server.options().with_lease(LEASE).with_notify(notify);
    RedisEngine::connect(&options).await.expect("the server answers")
}

/// A grant that no client renews or gives back.
async fn dead_holder(server: &OwnServer, mode: Mode) -> Grant {
    let engine = engine(server, Notify::On).await;
    within("it gets in", engine.acquire(&request(&engine, mode, LEASE))).await.unwrap().expect("granted")
}

/// A place in the queue that no client keeps or leaves.
async fn dead_waiter(server: &OwnServer, watch: &Ylock, notify: Notify) {
    let before = waiters(watch).await;
    let engine = engine(server, notify).await;
    let task = tokio::spawn(async move { engine.acquire(&request(&engine, Mode::Write, LEASE)).await });
    until("it waits", async || waiters(watch).await == before + 1).await;
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
}

#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_step_forwards_beyond_the_lease_frees_the_lock_and_the_holder_is_told() {
    let mut set = SetServer::start().await;
    let (one, two) = (client(&set.server, LEASE).await, client(&set.server, LEASE).await);
    let three = client(&set.server, LEASE).await;
    // After an hour the server has forgotten the whole lock.
    for step in [LEASE + Duration::from_secs(1), HOUR] {
        let guard = within("it gets in", one.locks("users").write("alice")).await.unwrap();
        set.forwards(step).await;
        let next = two.locks("users").write("alice").now().await.unwrap().expect("it is free at once");
        assert!(next.token() > guard.token());
        // Not `Lapsed`: its renewal was refused, before the lease ended by its own clock.
        assert_eq!(within("the holder is told", guard.lost()).await, LossReason::Gone);
        assert_eq!(within("given back", guard.unlock()).await.unwrap(), Unlocked::WasLost);
        assert!(next.is_valid() && three.locks("users").write("alice").now().await.unwrap().is_none());
        assert_eq!(within("given back", next.unlock()).await.unwrap(), Unlocked::Released);
    }
}

#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_step_forwards_by_less_than_half_of_a_lease_loses_neither_a_hold_nor_a_place() {
    let (mut set, lease) = (SetServer::start().await, Duration::from_secs(6));
    let mut clients = Vec::new();
    for _ in 0..3 {
        clients.push(client(&set.server, lease).await);
    }
    let (guard, second) = one_holds_and_another_waits(&clients[0], &clients[1]).await;
    let third = joins(&clients[2], 1).await;
    set.forwards(lease * 2 / 5).await;
    // Each waiter has asked, and the holder has renewed since.
    tokio::time::sleep(lease).await;
    assert!(guard.is_valid() && !second.is_finished() && waiters(&clients[0]).await == 2);
    let mut token = guard.token();
    assert_eq!(within("given back", guard.unlock()).await.unwrap(), Unlocked::Released);
    let second = within("the second gets in", second).await.unwrap();
    assert!(second.token() > token && !third.is_finished());
    token = second.token();
    assert_eq!(within("given back", second.unlock()).await.unwrap(), Unlocked::Released);
    assert!(within("the third gets in", third).await.unwrap().token() > token);
}

/// Waiters get in in any order: the server takes all of them for dead, until they ask.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_step_forwards_beyond_the_lease_forgets_nobody() {
    let mut set = SetServer::start().await;
    let mut clients = Vec::new();
    for _ in 0..3 {
        clients.push(client(&set.server, LEASE).await);
    }
    for step in [LEASE, HOUR] {
        let (guard, second) = one_holds_and_another_waits(&clients[0], &clients[1]).await;
        let third = joins(&clients[2], 1).await;
        set.forwards(step).await;
        let takes_turn = async |waiting: JoinHandle<Guard>| {
            let guard = within("it gets in", waiting).await.unwrap();
            let token = guard.token();
            assert!(within("given back", guard.unlock()).await.unwrap().is_released());
            token
        };
        let (second, third) = tokio::join!(takes_turn(second), takes_turn(third));
        assert!(second != third && second.min(third) > guard.token());
    }
}

#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_step_backwards_prolongs_no_lease() {
    let mut set = SetServer::start().await;
    let (next, options) = (client(&set.server, LEASE).await, Options::default().with_lease(LEASE));
    for modes in [&[Mode::Write][..], &[Mode::Read, Mode::Read]] {
        let mut last = None;
        for mode in modes {
            last = Some((Instant::now(), dead_holder(&set.server, *mode).await.token));
        }
        let (granted, token) = last.expect("a reader or a writer holds");
        set.backwards(HOUR).await;
        let since = quiet_time();
        let guard = within("the next one gets in", next.locks("users").write("alice")).await.unwrap();
        assert!(granted.elapsed() >= LEASE - options.margin(), "it got in beside {modes:?}");
        let took = quiet_time() - since;
        assert!(took < LEASE * 2, "{modes:?} stayed for {took:?}");
        assert!(guard.token() > token.map(Into::into));
        assert!(within("given back", guard.unlock()).await.unwrap().is_released());
    }
}

/// Dead waiters that would be told are passed over when their turn comes. Dead waiters that ask by themselves would keep all other clients
/// out; and a client that only tries is turned away as long as there is a waiter.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_step_backwards_keeps_no_dead_waiter() {
    let mut set = SetServer::start().await;
    let (one, two) = (client(&set.server, LEASE).await, client(&set.server, LEASE).await);
    let poll = Notify::Off { poll: Duration::from_millis(5), poll_longest: Duration::from_millis(40) };
    for (notify, tries) in [(Notify::On, false), (Notify::On, true), (poll, false), (poll, true)] {
        let guard = within("it gets in", one.locks("users").write("alice")).await.unwrap();
        for _ in 0..3 {
            dead_waiter(&set.server, &one, notify).await;
        }
        set.backwards(HOUR).await;
        let (since, locks) = (quiet_time(), two.locks("users"));
        assert!(within("given back", guard.unlock()).await.unwrap().is_released());
        if tries {
            until("no waiter is left", async || locks.write("alice").now().await.unwrap().is_some()).await;
        } else {
            drop(within("the next one gets in", locks.write("alice")).await.unwrap());
        }
        let took = quiet_time() - since;
        assert!(took < LEASE * 2, "{notify:?}: they stayed for {took:?}");
    }
}

/// Places come from the server's clock; with `strict` from what clients think that it shows, which is wrong for some of them after
/// the step. Nothing but the places shows that there was a small step: so the holder has used some of its lease before.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_step_backwards_changes_neither_the_order_nor_that_tokens_grow() {
    let mut set = SetServer::start().await;
    let small = LEASE / 6;
    for (fairness, step) in
        [(Fairness::Fair, HOUR), (Fairness::Fair, small), (Fairness::Strict, HOUR), (Fairness::Strict, small)]
    {
        let options = Options::default().with_lease(LEASE).with_fairness(fairness);
        let mut clients = Vec::new();
        for _ in 0..4 {
            clients.push(client(&set.server, LEASE).await.with_options(options.clone()));
        }
        let guard = within("it gets in", clients[0].locks("users").write("alice")).await.unwrap();
        tokio::time::sleep(small * 3 / 2).await;
        let first = joins(&clients[1], 0).await;
        set.backwards(step).await;
        clients.push(client(&set.server, LEASE).await.with_options(options.clone()));
        let mut waiting = vec![first];
        for client in &clients[2..] {
            if fairness == Fairness::Strict {
                // A client's guess of the time is wrong by half a trip to the server, which may be long on a busy machine.
                tokio::time::sleep(LEASE / 10).await;
            }
            waiting.push(joins(client, waiting.len()).await);
        }
        // The clients that were there before have asked and renewed since.
        tokio::time::sleep(LEASE).await;
        assert!(guard.is_valid() && waiters(&clients[0]).await == waiting.len());
        let mut inside = guard;
        while !waiting.is_empty() {
            let token = inside.token();
            assert!(within("given back", inside.unlock()).await.unwrap().is_released());
            inside = within("the first gets in", waiting.remove(0)).await.unwrap();
            assert!(inside.token() > token, "{fairness:?} {step:?}");
            assert!(waiting.iter().all(|waiting| !waiting.is_finished()), "{fairness:?} {step:?}");
        }
        assert!(within("given back", inside.unlock()).await.unwrap().is_released());
    }
}

/// The hash of a lock lives for a minute longer than the lease of its holder, so a lock that is held for longer depends on its renewals
/// to prolong the life of the hash too.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_lock_that_is_renewed_is_there_for_as_long_as_it_is_held() {
    let (mut set, lease) = (SetServer::start().await, Duration::from_secs(30));
    let options = set.server.options().with_lease(lease);
    let one = RedisEngine::connect(&options).await.unwrap();
    for asks in [false, true] {
        let held = request(&one, Mode::Write, lease);
        let mut grant = within("it gets in", one.acquire(&held)).await.unwrap().expect("granted");
        for _ in 0..12 {
            set.forwards(lease * 2 / 3).await;
            if asks {
                grant = within("it is answered", one.acquire(&held)).await.unwrap().expect("granted");
                continue;
            }
            let holding = Holding::new(grant.clone(), None);
            let answer = one.renew(&[holding]).await.remove(0).unwrap();
            assert!(matches!(answer, Renewal::Renewed { .. }), "{answer:?}");
        }
        assert_eq!(one.release(&grant.key, grant.id, None).await.unwrap(), Release::Released);
    }
}

/// The lock stays in use, and nothing more is undone.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn what_was_undone_is_forgotten_after_a_minute_by_a_lock_that_is_held_or_taken_again() {
    let mut set = SetServer::start().await;
    let lease = HOUR;
    let engine = RedisEngine::connect(&set.server.options().with_lease(lease)).await.unwrap();
    for is_held in [true, false] {
        let (first, second) = (request(&engine, Mode::Write, lease), request(&engine, Mode::Write, lease));
        let grant = within("it gets in", engine.acquire(&first)).await.unwrap().expect("granted");
        for _ in 0..3 {
            // The client knows nothing of this acquisition.
            let unknown = request(&engine, Mode::Write, lease);
            engine.release(&unknown.key, unknown.id, None).await.unwrap();
        }
        if !is_held {
            engine.release(&first.key, first.id, None).await.unwrap();
        }
        set.forwards(Duration::from_secs(61)).await;
        if is_held {
            let answer = engine.renew(&[Holding::new(grant, None)]).await.remove(0).unwrap();
            assert!(matches!(answer, Renewal::Renewed { .. }), "{answer:?}");
        } else {
            within("it gets in", engine.acquire(&second)).await.unwrap().expect("granted");
        }
        let keys: Vec<String> = set.server.ask(&["KEYS", LOCKS]).await.unwrap();
        let fields: Vec<String> = set.server.ask(&["HKEYS", &keys[0]]).await.unwrap();
        let marks = fields.iter().filter(|field| field.starts_with('x') || field.starts_with('y'));
        assert_eq!(marks.count(), 0, "{is_held}: {fields:?}");
        let held = if is_held { first } else { second };
        engine.release(&held.key, held.id, None).await.unwrap();
    }
}
