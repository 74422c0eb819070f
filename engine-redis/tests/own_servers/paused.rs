//! Clients that stand still for a while, with all that they hold and wait for. They are processes of their own: each test starts
//! itself once more.

use std::time::{Duration, Instant};

use ylock_engine_redis::RedisOptions;
use ylock_testkit::{ChildProcess, quiet_time};

use super::own_server::{Disk, OwnServer};
use super::{client, client_with, joins, until, waiters, within};

/// So long that a request is answered in time also where the machine has ten times as much to do as it can.
const LEASE: Duration = Duration::from_secs(8);

fn start(test: &str, server: &OwnServer) -> ChildProcess {
    ChildProcess::start(&format!("paused::{test}"), &server.port().to_string())
}

/// The server to connect to, in the other process.
fn server() -> Option<RedisOptions> {
    let port = ChildProcess::told()?;
    Some(RedisOptions::new("127.0.0.1", port.parse().unwrap()).with_lease(LEASE))
}

/// The other process: waits, and holds for a moment.
async fn wait(options: RedisOptions) {
    let ylock = client_with(options).await;
    let guard = within("it gets in", ylock.locks("users").write("alice")).await.unwrap();
    ChildProcess::say(&format!("entered {}", guard.token().unwrap()));
    ChildProcess::say(&format!("unlocked {:?}", within("given back", guard.unlock()).await.unwrap()));
}

/// Waits until a pause since `since` is longer than a lease, however much of it has gone by.
async fn pause_longer_than_lease(since: Instant) {
    tokio::time::sleep((LEASE * 5 / 4).saturating_sub(since.elapsed())).await;
}

#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_holder_that_was_paused_knows_at_once_and_disturbs_nobody() {
    if let Some(server) = server() {
        let ylock = client_with(server).await;
        let guard = within("it gets in", ylock.locks("users").write("alice")).await.unwrap();
        return ChildProcess::hold_through_pause(guard, LEASE).await;
    }
    let server = OwnServer::start(Disk::Nothing).await;
    let (next, third) = (client(&server, LEASE).await, client(&server, LEASE).await);
    let mut other = start("a_holder_that_was_paused_knows_at_once_and_disturbs_nobody", &server);
    let token = other.says_token("holds").await;
    let paused = other.stop();
    let guard = within("the next one gets in", next.locks("users").write("alice")).await.unwrap();
    assert!(guard.token().unwrap().get() > token);
    pause_longer_than_lease(paused).await;
    other.go_on();
    other.knows_that_it_was_lost().await;
    // The grant has been renewed since.
    tokio::time::sleep(LEASE).await;
    assert!(guard.is_valid() && third.locks("users").write("alice").now().await.unwrap().is_none());
    assert!(within("given back", guard.unlock()).await.unwrap().is_released());
}

#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_waiter_that_was_paused_is_passed_over_and_gets_in_in_the_end() {
    if let Some(server) = server() {
        return wait(server).await;
    }
    let server = OwnServer::start(Disk::Nothing).await;
    let (one, two) = (client(&server, LEASE).await, client(&server, LEASE).await);
    let guard = within("it gets in", one.locks("users").write("alice")).await.unwrap();
    let mut other = start("a_waiter_that_was_paused_is_passed_over_and_gets_in_in_the_end", &server);
    until("it waits", async || waiters(&one).await == 1).await;
    other.stop();
    until("it counts as dead", async || waiters(&one).await == 0).await;
    let (second, since) = (joins(&two, 0).await, quiet_time());
    assert!(within("given back", guard.unlock()).await.unwrap().is_released());
    let guard = within("the second gets in", second).await.unwrap();
    let took = quiet_time() - since;
    assert!(took < LEASE, "it waited for a waiter that was let in and did not know: {took:?}");
    other.go_on();
    until("it waits again", async || waiters(&two).await == 1).await;
    let token = guard.token().unwrap().get();
    assert!(within("given back", guard.unlock()).await.unwrap().is_released());
    assert!(other.says_token("entered").await > token);
    assert_eq!(other.says("unlocked").await, "Released");
}

/// The message that the waiter was let in reaches it when that grant is over.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_waiter_that_is_let_in_while_it_is_paused_does_not_believe_it() {
    if let Some(server) = server() {
        return wait(server).await;
    }
    let server = OwnServer::start(Disk::Nothing).await;
    let (one, two) = (client(&server, LEASE).await, client(&server, LEASE).await);
    let guard = within("it gets in", one.locks("users").write("alice")).await.unwrap();
    let mut other = start("a_waiter_that_is_let_in_while_it_is_paused_does_not_believe_it", &server);
    until("it waits", async || waiters(&one).await == 1).await;
    let paused = other.stop();
    let first = guard.owner();
    assert!(within("given back", guard.unlock()).await.unwrap().is_released());
    let seen = one.inspect("users", "alice").await.unwrap();
    assert!(seen.holders.len() == 1 && seen.holders[0].owner != first, "it was let in: {seen:?}");
    let guard = within("the second gets in", two.locks("users").write("alice")).await.unwrap();
    pause_longer_than_lease(paused).await;
    other.go_on();
    until("it waits again", async || waiters(&two).await == 1).await;
    let token = guard.token().unwrap().get();
    assert!(guard.is_valid());
    assert!(within("given back", guard.unlock()).await.unwrap().is_released());
    assert!(other.says_token("entered").await > token);
    assert_eq!(other.says("unlocked").await, "Released");
}
