//! Clients that stand still or are killed, with all that they hold and wait for. They are processes of their own: each test starts itself once more.

use std::time::Duration;

use ylock_engine_postgres::PostgresOptions;
use ylock_testkit::{ChildProcess, quiet_time};

use super::own_server::{OwnServer, USER};
use super::{acquire, client, client_with, joins, told, unlock, until, waiters, within};

/// So long that a request is answered in time also where the machine has ten times as much to do as it can.
const LEASE: Duration = Duration::from_secs(8);

fn start(test: &str, server: &OwnServer) -> ChildProcess {
    ChildProcess::start(&format!("paused::{test}"), &server.port().to_string())
}

/// The server to connect to, in the other process.
fn server() -> Option<PostgresOptions> {
    let port = ChildProcess::told()?.parse().unwrap();
    let options = PostgresOptions::new("127.0.0.1", port, "postgres");
    Some(options.with_login(USER, ylock_core::url::Secret::new("")).with_lease(LEASE))
}

async fn wait(options: PostgresOptions) {
    let ylock = client_with(options).await;
    let guard = acquire(&ylock).await;
    ChildProcess::say(&format!("entered {}", guard.token().unwrap()));
    ChildProcess::say(&format!("unlocked {:?}", within("given back", guard.unlock()).await.unwrap()));
}

#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn a_holder_that_was_paused_knows_at_once_and_disturbs_nobody() {
    if let Some(server) = server() {
        let ylock = client_with(server).await;
        return ChildProcess::hold_through_pause(acquire(&ylock).await, LEASE).await;
    }
    let server = OwnServer::start().await;
    let (next, third) = (client(&server, LEASE).await, client(&server, LEASE).await);
    let mut other = start("a_holder_that_was_paused_knows_at_once_and_disturbs_nobody", &server);
    let token = other.says_token("holds").await;
    let paused = other.stop();
    let guard = acquire(&next).await;
    assert!(guard.token().unwrap().get() > token);
    tokio::time::sleep((LEASE * 5 / 4).saturating_sub(paused.elapsed())).await;
    other.go_on();
    other.knows_that_it_was_lost().await;
    // The grant has been renewed since.
    tokio::time::sleep(LEASE / 2).await;
    assert!(guard.is_valid() && third.locks("users").write("alice").now().await.unwrap().is_none());
    unlock(guard).await;
}

#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn a_waiter_that_is_let_in_while_it_is_paused_does_not_believe_it() {
    if let Some(server) = server() {
        return wait(server).await;
    }
    let server = OwnServer::start().await;
    let (one, two) = (client(&server, LEASE).await, client(&server, LEASE).await);
    let guard = acquire(&one).await;
    let mut other = start("a_waiter_that_is_let_in_while_it_is_paused_does_not_believe_it", &server);
    until("it can be told", async || told(&server).await == 1).await;
    let paused = other.stop();
    let first = guard.owner();
    unlock(guard).await;
    let seen = one.inspect("users", "alice").await.unwrap();
    assert!(seen.holders.len() == 1 && seen.holders[0].owner != first, "it was let in: {seen:?}");
    let guard = acquire(&two).await;
    tokio::time::sleep((LEASE * 5 / 4).saturating_sub(paused.elapsed())).await;
    other.go_on();
    until("it waits again", async || waiters(&two).await == 1).await;
    let token = guard.token().unwrap().get();
    assert!(guard.is_valid());
    unlock(guard).await;
    assert!(other.says_token("entered").await > token);
    assert_eq!(other.says("unlocked").await, "Released");
}

/// The server notices that the connection which listened is gone.
#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn a_waiter_that_was_killed_at_the_head_is_passed_over_at_once() {
    if let Some(server) = server() {
        return wait(server).await;
    }
    let server = OwnServer::start().await;
    let (one, two) = (client(&server, LEASE).await, client(&server, LEASE).await);
    let guard = acquire(&one).await;
    let other = start("a_waiter_that_was_killed_at_the_head_is_passed_over_at_once", &server);
    until("it can be told", async || told(&server).await == 1).await;
    let waiting = joins(&two, &one, 1).await;
    until("the second can be told, too", async || told(&server).await == 2).await;
    drop(other);
    until("the server knows", async || {
        let statement = "select count(*) from pg_locks where locktype = 'advisory'";
        server.client().await.query_one(statement, &[]).await.unwrap().get::<_, i64>(0) == 1
    })
    .await;
    let since = quiet_time();
    unlock(guard).await;
    unlock(within("the second gets in", waiting).await.unwrap()).await;
    let took = quiet_time() - since;
    assert!(took < LEASE / 4, "{took:?}");
}

#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn the_lock_of_a_holder_that_was_killed_is_free_after_its_lease() {
    if let Some(server) = server() {
        let ylock = client_with(server).await;
        let guard = acquire(&ylock).await;
        ChildProcess::say(&format!("holds {}", guard.token().unwrap()));
        return std::future::pending().await;
    }
    let server = OwnServer::start().await;
    let one = client(&server, LEASE).await;
    let mut other = start("the_lock_of_a_holder_that_was_killed_is_free_after_its_lease", &server);
    let token = other.says_token("holds").await;
    let waiting = joins(&one, &one, 0).await;
    drop(other);
    let since = quiet_time();
    let guard = within("the next one gets in", waiting).await.unwrap();
    assert!(guard.token().unwrap().get() > token);
    let took = quiet_time() - since;
    assert!(took < LEASE * 3 / 2, "{took:?}");
    unlock(guard).await;
}
