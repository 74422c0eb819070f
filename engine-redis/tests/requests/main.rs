//! What the engine asks of a server, and what it makes of the answers: without a server, by a fake one whose answers are written down.
#![allow(
    clippy::disallowed_methods,
    reason = "a test stands outside: it looks at time and starts tasks of its own"
)]

mod fake_server;

use std::sync::Arc;
use std::time::Duration;

use fake_server::{Answer, FakeServer, LAST_TOKEN};
use ylock_core::engine::{AcquisitionId, Engine, Holding, LossReason, Patience, Release, Renewal, Request};
use ylock_core::{ClientName, ErrorKind, Fairness, Key, Mode, Owner};
use ylock_engine_redis::RedisOptions;
use ylock_engine_redis::options::{Eviction, Notify};
use ylock_testkit::eventually;

use Answer::{Busy, Evicts, Granted, HangsUp, Lost, Number, Queued, Refused};

const LEASE: Duration = Duration::from_secs(5);
/// As the guarantees say of a request without an answer.
const LATE: &str = "60000";

fn options() -> RedisOptions {
    RedisOptions::new("fake", 6379).with_lease(LEASE)
}

fn polling(poll: Duration, poll_longest: Duration) -> RedisOptions {
    options().with_notify(Notify::Off { poll, poll_longest })
}

fn request() -> Request {
    let key = Key::new("users", "alice").unwrap();
    Request::new(key, AcquisitionId::from_u128(1), Mode::Write, Owner::new(), ClientName::default(), LEASE)
}

fn attempt() -> Request {
    request().with_patience(Patience::Try)
}

#[tokio::test(start_paused = true)]
async fn a_free_lock_costs_one_request_that_says_what_is_wanted() {
    let server = FakeServer::answering([Granted]);
    let grant = server.engine(options()).await.acquire(&request()).await.unwrap().expect("granted");
    assert_eq!(grant.token.map(|token| token.get()), Some(7));
    let [asked] = &server.asked()[..] else { panic!("{:?}", server.names()) };
    assert_eq!(asked.arguments[1..5], ["w", "5000", "queue", "fair"]);
}

/// One slow request is no reason for a program not to start: connecting may take longer than a request.
#[tokio::test(start_paused = true)]
async fn a_server_that_is_slow_for_a_moment_is_connected_to() {
    for command in ["INFO", "SCRIPT", "HGET", "SUBSCRIBE", "TIME"] {
        let server = FakeServer::answering([Granted]).leaving_unanswered(command);
        let engine = server.engine(options()).await;
        assert!(engine.acquire(&request()).await.unwrap().is_some(), "{command}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_with_what_another_version_stores_is_refused_by_name() {
    for eviction in [Eviction::Refused, Eviction::LostLocksAccepted] {
        let server = FakeServer::default().of_version("2");
        let refused = server.connect(&options().with_eviction(eviction)).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Config, "{refused}");
        assert!(refused.to_string().contains("version 2"), "{refused}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_try_and_an_unfair_acquisition_are_told_as_such() {
    let server = FakeServer::answering([Granted]);
    let request = attempt().with_fairness(Fairness::Unfair);
    server.engine(options()).await.acquire(&request).await.unwrap().expect("granted");
    assert_eq!(server.asked()[0].arguments[3..5], ["try", "unfair"]);
}

#[tokio::test(start_paused = true)]
async fn a_try_that_is_turned_away_costs_one_request() {
    let server = FakeServer::answering([Busy]);
    assert!(server.engine(options()).await.acquire(&attempt()).await.unwrap().is_none());
    assert_eq!(server.names(), ["acquire"]);
}

/// The first question may still let it in, when no caller waits any more: it would keep others out for a lease.
#[tokio::test(start_paused = true)]
async fn a_try_that_is_turned_away_with_a_question_open_is_undone_for_good() {
    let server = FakeServer::answering([HangsUp, Busy, Number(0)]);
    assert!(server.engine(options()).await.acquire(&attempt()).await.unwrap().is_none());
    assert_eq!(server.names(), ["acquire", "acquire", "release"]);
    assert_eq!(server.asked()[2].arguments[1], LATE);
}

/// As servers say that refuse a script before it runs, and that end it in the middle.
const MAY_NOT: &str = "NOPERM User shop has no permissions to run the 'evalsha' command";
const ENDED: &str =
    "NOPERM User shop has no permissions to run the 'hdel' command script: 2b, on @user_script:7.";

/// There is nothing to undo; and the attempt would be refused as well, for a lease.
#[tokio::test(start_paused = true)]
async fn an_acquisition_that_was_refused_is_given_back_without_a_request() {
    let loading = Refused("LOADING Redis is loading the dataset in memory");
    for answer in [Refused(MAY_NOT), loading, Evicts] {
        let server = FakeServer::answering([answer; 100]);
        let engine = server.engine(options()).await;
        engine.acquire(&attempt()).await.unwrap_err();
        let asked = server.names().len();
        let request = attempt();
        let released = engine.release(&request.key, request.id, None).await.unwrap();
        assert_eq!((released, server.names().len()), (Release::WasGone, asked), "{answer:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_acquisition_that_may_be_inside_is_undone_for_good_whatever_was_refused() {
    // A script that failed may have written; a question without an answer may arrive; and what was
    // let in is inside.
    for (answers, late) in [
        (vec![Refused(ENDED)], LATE),
        (vec![HangsUp, Refused(MAY_NOT)], LATE),
        (vec![Queued, Refused(MAY_NOT)], "0"),
    ] {
        let server = FakeServer::answering(answers.into_iter().chain([Number(1)]));
        let engine = server.engine(options()).await;
        engine.acquire(&request()).await.unwrap_err();
        let request = request();
        assert_eq!(engine.release(&request.key, request.id, None).await.unwrap(), Release::Released);
        assert_eq!(server.asked().last().unwrap().arguments[1], late);
    }
}

#[tokio::test(start_paused = true)]
async fn a_grant_that_replicas_must_have_is_asked_for_once_more() {
    let server = FakeServer::answering([Granted, Granted]).with_replicas(2);
    let engine = server.engine(options().with_min_replicas(2)).await;
    assert!(engine.acquire(&request()).await.unwrap().is_some());
    assert_eq!(server.names(), ["acquire", "acquire"]);
}

#[tokio::test(start_paused = true)]
async fn a_grant_that_too_few_replicas_have_is_given_back() {
    let server = FakeServer::answering([Granted, Granted, Number(1)]).with_replicas(1);
    let engine = server.engine(options().with_min_replicas(2)).await;
    let error = engine.acquire(&request()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert_eq!(server.names(), ["acquire", "acquire", "release"]);
}

#[tokio::test(start_paused = true)]
async fn a_release_says_whether_there_was_something_to_release() {
    for (answer, release) in [(1, Release::Released), (0, Release::WasGone)] {
        let server = FakeServer::answering([Granted, Number(answer)]);
        let (engine, request) = (server.engine(options()).await, request());
        engine.acquire(&request).await.unwrap().expect("granted");
        assert_eq!(engine.release(&request.key, request.id, None).await.unwrap(), release);
        assert_eq!(server.asked()[1].arguments[1], "0", "all questions were answered");
    }
}

#[tokio::test(start_paused = true)]
async fn a_holder_is_told_why_it_has_lost_its_lock() {
    for (word, reason) in [("revoked", LossReason::Revoked), ("gone", LossReason::Gone)] {
        let server = FakeServer::answering([Granted, Lost(word)]);
        let engine = server.engine(options()).await;
        let grant = engine.acquire(&request()).await.unwrap().expect("granted");
        let renewal = engine.renew(&[Holding::new(grant, None)]).await.pop().unwrap().unwrap();
        assert!(matches!(renewal, Renewal::Lost(why) if why == reason), "{renewal:?}");
    }
}

/// A request that came late has let an acquisition in that no caller waits for.
#[tokio::test(start_paused = true)]
async fn a_grant_that_no_caller_waits_for_is_given_back() {
    let server = FakeServer::answering([Number(1)]);
    let _engine = server.engine(options()).await;
    server.tell("AAAAAAAAAAAAAAAAAAAABw 9 0 ylock:{116}:5:users:alice").await;
    eventually(LEASE, "it is given back", || async { server.names() == ["release"] }).await;
    assert_eq!(server.asked()[0].arguments[..2], ["AAAAAAAAAAAAAAAAAAAABw", LATE]);
}

/// The answer to a question says which token was given last: a message of that token is about a turn that was over when the server answered.
#[tokio::test(start_paused = true)]
async fn a_message_from_before_the_last_answer_is_not_a_grant() {
    let server = FakeServer::answering([Queued, Granted]);
    let engine = Arc::new(server.engine(options()).await);
    let waiting = tokio::spawn(async move { engine.acquire(&request()).await });
    eventually(LEASE, "it waits", || async { server.names() == ["acquire"] }).await;
    server.tell(&format!("AAAAAAAAAAAAAAAAAAAAAQ {LAST_TOKEN} 0 ylock:{{116}}:5:users:alice")).await;
    let grant = waiting.await.unwrap().unwrap().expect("granted");
    assert_eq!(grant.token.map(|token| token.get()), Some(7));
    assert_eq!(server.names(), ["acquire", "acquire"]);
}

#[tokio::test(start_paused = true)]
async fn a_message_of_its_turn_is_a_grant() {
    let server = FakeServer::answering([Queued]);
    let engine = Arc::new(server.engine(options()).await);
    let waiting = tokio::spawn(async move { engine.acquire(&request()).await });
    eventually(LEASE, "it waits", || async { server.names() == ["acquire"] }).await;
    server.tell(&format!("AAAAAAAAAAAAAAAAAAAAAQ {} 1 ylock:{{116}}:5:users:alice", LAST_TOKEN + 1)).await;
    let grant = waiting.await.unwrap().unwrap().expect("granted");
    assert_eq!(grant.token.map(|token| token.get()), Some(LAST_TOKEN + 1));
    assert_eq!(server.names(), ["acquire"]);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_hears_no_messages_asks_less_and_less_often() {
    let server = FakeServer::answering([Queued, Queued, Queued, Queued, Queued, Granted]);
    let options = polling(Duration::from_millis(20), Duration::from_millis(100));
    server.engine(options).await.acquire(&request()).await.unwrap().expect("granted");
    let asked = server.asked();
    let pauses: Vec<_> = asked.windows(2).map(|pair| pair[1].at - pair[0].at).collect();
    for (pause, meant) in pauses.iter().zip([20, 40, 80, 100, 100]) {
        let meant = Duration::from_millis(meant);
        assert!((meant / 2..=meant * 2).contains(pause), "{pauses:?}");
    }
}
