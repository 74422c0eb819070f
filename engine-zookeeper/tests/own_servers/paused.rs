//! A client that stands still for longer than its session, with all that it holds. It is a process of its own.

use ylock_core::url::Host;
use ylock_testkit::ChildProcess;

use super::own_server::OwnServer;
use super::server::host;
use super::{LEASE, SESSION, client, queue_up, until, waiters, within};

/// The other process: holds until it was paused, and tells what it finds then.
async fn hold(server: Host) {
    let ylock = client(vec![server]).await;
    let guard = within("it gets in", ylock.locks("users").write("alice")).await.unwrap();
    ChildProcess::hold_through_pause(guard, LEASE).await;
    let again = within("it gets in again", ylock.locks("users").write("alice")).await.unwrap();
    ChildProcess::say(&format!("again {}", again.token().unwrap()));
}

#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn a_holder_that_was_paused_knows_at_once_and_disturbs_nobody() {
    if let Some(server) = ChildProcess::told() {
        return hold(host(&server)).await;
    }
    let server = OwnServer::start().await;
    let (next, third) = (client(vec![server.host()]).await, client(vec![server.host()]).await);
    let address = format!("127.0.0.1:{}", server.host().port.unwrap());
    let test = "paused::a_holder_that_was_paused_knows_at_once_and_disturbs_nobody";
    let mut other = ChildProcess::start(test, &address);
    let token = other.says_token("holds").await;
    let waiting = queue_up(&next, &third).await;
    other.stop();
    let guard = within("the next one gets in", waiting).await.unwrap();
    let next_token = guard.token().unwrap().get();
    assert!(next_token > token);
    other.go_on();
    other.knows_that_it_was_lost().await;
    // The grant has been renewed since.
    tokio::time::sleep(LEASE).await;
    assert!(guard.is_valid() && third.locks("users").write("alice").now().await.unwrap().is_none());
    assert!(within("given back", guard.unlock()).await.unwrap().is_released());
    assert!(other.says_token("again").await > next_token);
}

/// The other process: waits while it is paused.
async fn wait(server: Host) {
    let ylock = client(vec![server]).await;
    let result = ylock.locks("users").write("alice").await;
    match result {
        Ok(guard) => ChildProcess::say(&format!("inside {}", guard.token().unwrap())),
        Err(error) => ChildProcess::say(&format!("failed {error}")),
    }
}

/// The waiter's session is over by then, and its place with it.
#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn a_waiter_that_was_paused_for_longer_than_its_session_queues_again() {
    if let Some(server) = ChildProcess::told() {
        return wait(host(&server)).await;
    }
    let server = OwnServer::start().await;
    let one = client(vec![server.host()]).await;
    let guard = one.locks("users").write("alice").await.unwrap();
    let address = format!("127.0.0.1:{}", server.host().port.unwrap());
    let test = "paused::a_waiter_that_was_paused_for_longer_than_its_session_queues_again";
    let mut other = ChildProcess::start(test, &address);
    until("it waits", async || waiters(&one).await == 1).await;
    other.stop();
    until("its session is over", async || waiters(&one).await == 0).await;
    tokio::time::sleep(SESSION / 2).await;
    other.go_on();
    until("it waits again", async || waiters(&one).await == 1).await;
    let token = guard.token().unwrap().get();
    drop(guard);
    assert!(other.says_token("inside").await > token);
}
