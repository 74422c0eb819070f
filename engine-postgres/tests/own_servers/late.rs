//! Questions whose answers are lost, and questions that arrive after everything was undone.

use std::time::Duration;

use ylock_core::engine::{AcquisitionId, Engine, Release, Request};
use ylock_core::url::{Host, Secret};
use ylock_core::{ClientName, Key, Mode, Owner};
use ylock_engine_postgres::{PostgresEngine, PostgresOptions};
use ylock_testkit::own_servers::{Link, Proxy};

use super::own_server::{LOGGED, OwnServer, USER};
use super::{LONG, client, engine_with, unlock, until, within};

/// After this a question counts as lost, and is asked again over another connection.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(1);

/// Returns an engine that reaches the server over a line.
async fn over_a_line(server: &OwnServer) -> (PostgresEngine, Proxy) {
    let line = Proxy::before(&[Host::new("127.0.0.1", server.port())]).await;
    let port = line.hosts()[0].port.unwrap();
    let options = PostgresOptions::new("127.0.0.1", port, "postgres")
        .with_login(USER, Secret::new(""))
        .with_lease(LONG)
        .with_request_timeout(REQUEST_TIMEOUT);
    let engine = engine_with(&options).await;
    // The first question of a connection is preceded by the preparation of its statement: from now on a question is one trip.
    let first = request_for(&engine, "bob", Mode::Write);
    assert!(engine.acquire(&first).await.unwrap().is_some());
    assert_eq!(engine.release(&first.key, first.id, None).await.unwrap(), Release::Released);
    (engine, line)
}

fn request(engine: &PostgresEngine, mode: Mode) -> Request {
    request_for(engine, "alice", mode)
}

fn request_for(engine: &PostgresEngine, name: &str, mode: Mode) -> Request {
    let id = AcquisitionId::new(&*engine.environment());
    let key = Key::new("users", name).unwrap();
    Request::new(key, id, mode, Owner::new(), ClientName::default(), LONG)
}

/// Returns how many acquisitions were asked for and carried out.
fn acquisitions(server: &OwnServer) -> usize {
    let log = server.log();
    log.lines().filter(|line| line.contains("execute s") && line.contains("acquire(")).count()
}

/// Returns when the lease of the second reader ends, by the server's clock.
async fn end_of_second_reader(server: &OwnServer) -> Option<i64> {
    let row = server.client().await.query_opt("select expires from ylock.reader", &[]).await.unwrap();
    row.map(|row| row.get(0))
}

/// The client counts its lease from the question that was answered: a lease that the store counts from the one before would end too early.
#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn a_reader_that_asks_again_has_a_whole_lease_from_then_on() {
    let server = OwnServer::start().await;
    let first = client(&server, LONG).await;
    let guard = within("the first reader gets in", first.locks("users").read("alice")).await.unwrap();
    let (engine, line) = over_a_line(&server).await;
    let asks = request(&engine, Mode::Read);
    line.set(Link::Deaf);
    let (granted, unheard) = tokio::join!(engine.acquire(&asks), async {
        until("it is in, and has not heard of it", async || end_of_second_reader(&server).await.is_some())
            .await;
        let end = end_of_second_reader(&server).await;
        line.set(Link::Open);
        end
    });
    let grant = granted.unwrap().expect("it is let in");
    assert!(end_of_second_reader(&server).await > unheard);
    assert_eq!(engine.release(&grant.key, grant.id, None).await.unwrap(), Release::Released);
    unlock(guard).await;
}

/// The question was asked twice, and one of the two is still under way when the grant is given back.
#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn a_question_that_arrives_after_the_release_lets_nothing_in() {
    let server = OwnServer::start_with(&LOGGED, &[]).await;
    let (engine, line) = over_a_line(&server).await;
    let asks = request(&engine, Mode::Write);
    line.set(Link::Keeps);
    let (granted, ()) = tokio::join!(engine.acquire(&asks), async {
        until("the first question is under way", async || line.kept() > 0).await;
        line.set(Link::Open);
    });
    let grant = granted.unwrap().expect("it is let in by the second question");
    assert_eq!(engine.release(&grant.key, grant.id, None).await.unwrap(), Release::Released);
    line.set(Link::Delivers);
    // That for the other lock, the one that was answered, and this one.
    until("the first question was carried out", async || acquisitions(&server) >= 3).await;
    let seen = engine.inspect(&grant.key).await.unwrap();
    assert!(seen.holders.is_empty() && seen.queue.is_empty(), "{seen:?}");
}
