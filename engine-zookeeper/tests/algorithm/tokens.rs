//! The floor of the tokens: all clients of one base have the same.

use ylock_core::engine::Engine;
use ylock_core::{ErrorKind, Mode, Result, Token};
use ylock_engine_zookeeper::ZookeeperEngine;

use super::fake::SESSION;
use super::fixture::Fixture;

/// As large as tokens that follow the clock.
const FLOOR: i64 = 1_800_000_000_000_000_000;
/// Where the floor is stored.
const NODE: &str = "/ylock/token-floor";

async fn token(fixture: &Fixture, engine: &ZookeeperEngine) -> i64 {
    let grant = engine.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    let seen = engine.inspect(&grant.key).await.unwrap().holders[0].token;
    let token = Token::from(grant.token.unwrap());
    assert_eq!(seen, Some(token));
    engine.release(&grant.key, grant.id, None).await.unwrap();
    token.get()
}

fn message<T>(result: Result<T>) -> String {
    let error = result.err().expect("it is refused");
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    error.to_string()
}

#[tokio::test(start_paused = true)]
async fn tokens_are_above_the_floor_also_those_of_clients_that_were_told_none() {
    let fixture = Fixture::new();
    let first = fixture.client_with(&Fixture::options().with_token_floor(FLOOR)).await.unwrap();
    let second = fixture.client().await;
    let mut last = FLOOR;
    for client in [&first, &second, &first] {
        let token = token(&fixture, client).await;
        assert!(token > last, "{token} after {last}");
        last = token;
    }
    assert!(last < FLOOR + 1_000_000);
}

#[tokio::test(start_paused = true)]
async fn a_client_with_another_floor_is_refused_and_told_which_one_there_is() {
    let fixture = Fixture::new();
    let first = fixture.client().await;
    assert!(token(&fixture, &first).await < 1_000_000);
    let message = message(fixture.client_with(&Fixture::options().with_token_floor(FLOOR)).await);
    for part in ["token_floor=1800000000000000000", "Say token_floor=0", NODE, "stop all clients"] {
        assert!(message.contains(part), "{message}");
    }
    fixture.client_with(&Fixture::options().with_token_floor(0)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn of_clients_that_come_first_at_the_same_time_one_decides() {
    let fixture = Fixture::new();
    let (one, other) = (Fixture::options().with_token_floor(FLOOR), Fixture::options().with_token_floor(7));
    let (one, other) = tokio::join!(fixture.client_with(&one), fixture.client_with(&other));
    assert_ne!(one.is_ok(), other.is_ok(), "the first write decides: {one:?} {other:?}");
    let (refused, decided) = if one.is_ok() { (other, FLOOR) } else { (one, 7) };
    assert!(message(refused).contains(&format!("Say token_floor={decided},")));
}

#[tokio::test(start_paused = true)]
async fn a_floor_that_was_removed_from_outside_is_put_back_by_who_holds_a_lock() {
    let fixture = Fixture::new();
    let here = fixture.client_with(&Fixture::options().with_token_floor(FLOOR)).await.unwrap();
    here.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    fixture.fake.nodes().transaction().remove(NODE).unwrap();
    tokio::time::sleep(SESSION / 2).await;
    assert_eq!(fixture.fake.nodes().read(NODE).unwrap().content, FLOOR.to_string().as_bytes());
}

/// The client holds nothing, and so puts nothing back: another one that comes then stores its own floor.
#[tokio::test(start_paused = true)]
async fn a_client_whose_floor_was_replaced_acquires_nothing_and_says_why() {
    let fixture = Fixture::new();
    let here = fixture.client_with(&Fixture::options().with_token_floor(FLOOR)).await.unwrap();
    token(&fixture, &here).await;
    fixture.fake.nodes().transaction().remove(NODE).unwrap();
    let there = fixture.client().await;
    for _ in 0..2 {
        let request = fixture.request(Mode::Write);
        let message = message(here.acquire(&request).await);
        assert!(message.contains("another token_floor is stored in the node token-floor"), "{message}");
        here.release(&request.key, request.id, None).await.unwrap();
        assert!(fixture.contenders().is_empty());
    }
    assert!(token(&fixture, &there).await < FLOOR);
}

/// Each session looks for itself.
#[tokio::test(start_paused = true)]
async fn a_later_session_notices_that_the_floor_was_replaced() {
    let fixture = Fixture::new();
    let here = fixture.client_with(&Fixture::options().with_token_floor(FLOOR)).await.unwrap();
    fixture.fake.end(0);
    fixture.fake.nodes().transaction().remove(NODE).unwrap();
    drop(fixture.client().await);
    message(here.acquire(&fixture.request(Mode::Write)).await);
}

#[tokio::test(start_paused = true)]
async fn a_floor_that_is_put_back_lets_the_client_go_on() {
    let fixture = Fixture::new();
    let here = fixture.client_with(&Fixture::options().with_token_floor(FLOOR)).await.unwrap();
    let before = token(&fixture, &here).await;
    fixture.fake.nodes().transaction().remove(NODE).unwrap();
    assert!(token(&fixture, &here).await > before, "it has put the floor back");
    assert_eq!(fixture.fake.nodes().read(NODE).unwrap().content, FLOOR.to_string().as_bytes());
    fixture.fake.sent();
    token(&fixture, &here).await;
    assert!(!fixture.fake.sent().contains(&"read_and_watch"), "nothing has changed since");
}

/// As an operator says it in the node who goes to another version.
#[tokio::test(start_paused = true)]
async fn clients_of_another_version_are_refused_by_name() {
    let fixture = Fixture::new();
    let here = fixture.client().await;
    token(&fixture, &here).await;
    let say = |content: &str| {
        let mut nodes = fixture.fake.nodes();
        let version = nodes.read(NODE).unwrap().version;
        nodes.transaction().write(NODE, content.as_bytes(), version).unwrap();
    };
    let is_refusal = |message: String| {
        for part in ["below the node /ylock ", "version 2", "version 1", NODE] {
            assert!(message.contains(part), "{part}: {message}");
        }
    };
    say("0 version=2");
    is_refusal(message(fixture.client_with(&Fixture::options()).await));
    for _ in 0..2 {
        let request = fixture.request(Mode::Write);
        is_refusal(message(here.acquire(&request).await));
        here.release(&request.key, request.id, None).await.unwrap();
        assert!(fixture.contenders().is_empty());
    }
    assert_eq!(fixture.fake.nodes().read(NODE).unwrap().content, b"0 version=2");
    say("0");
    token(&fixture, &here).await;
}

#[tokio::test(start_paused = true)]
async fn a_transaction_without_a_token_is_an_error_and_leaves_no_contender() {
    let fixture = Fixture::new();
    let here = fixture.client_with(&Fixture::options().with_token_floor(i64::MAX / 2)).await.unwrap();
    token(&fixture, &here).await;
    fixture.fake.nodes().go_on_from(1 << 52);
    let request = fixture.request(Mode::Write);
    let message = message(here.acquire(&request).await);
    assert!(message.contains("smaller token_floor"), "{message}");
    here.release(&request.key, request.id, None).await.unwrap();
    assert!(fixture.contenders().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_node_with_something_else_in_it_is_told() {
    let fixture = Fixture::new();
    drop(fixture.client().await);
    for content in ["-1", "many"] {
        let version = fixture.fake.nodes().read(NODE).unwrap().version;
        fixture.fake.nodes().transaction().write(NODE, content.as_bytes(), version).unwrap();
        let error = fixture.client_with(&Fixture::options()).await.unwrap_err();
        assert!(error.kind() == ErrorKind::Unexpected && error.to_string().contains(content), "{error}");
    }
}
