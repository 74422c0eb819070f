//! A client that stands still for longer than its session, with all that it holds. It is a process of its own.

use ylock_core::testkit::Other;
use ylock_core::url::Host;

use super::own_server::OwnServer;
use super::server::host;
use super::{LEASE, client, queue_up, within};

/// The other process: holds until it was paused, and tells what it finds then.
async fn hold(server: Host) {
    let ylock = client(vec![server]).await;
    let guard = within("it gets in", ylock.locks("users").write("alice")).await.unwrap();
    let lease = guard.lease();
    let pause = tokio::task::spawn_blocking(move || Other::is_valid_after_pause(&lease, LEASE));
    Other::say(&format!("holds {}", guard.token().unwrap()));
    Other::say(&format!("valid {}", within("it is paused", pause).await.unwrap()));
    Other::say(&format!("lost {:?}", within("it is told", guard.lost()).await));
    Other::say(&format!("unlocked {:?}", within("given back", guard.unlock()).await.unwrap()));
    let again = within("it gets in again", ylock.locks("users").write("alice")).await.unwrap();
    Other::say(&format!("again {}", again.token().unwrap()));
}

#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn a_holder_that_was_paused_knows_at_once_and_disturbs_nobody() {
    if let Some(server) = Other::told() {
        return hold(host(&server)).await;
    }
    let server = OwnServer::start().await;
    let (next, third) = (client(vec![server.host()]).await, client(vec![server.host()]).await);
    let address = format!("127.0.0.1:{}", server.host().port.unwrap());
    let test = "paused::a_holder_that_was_paused_knows_at_once_and_disturbs_nobody";
    let mut other = Other::start(test, &address);
    let token = other.says_token("holds").await;
    let waiting = queue_up(&next, &third).await;
    other.stop();
    let guard = within("the next one gets in", waiting).await.unwrap();
    let next_token = guard.token().unwrap().get();
    assert!(next_token > token);
    other.go_on();
    assert_eq!(other.says("valid").await, "false");
    let reason = other.says("lost").await;
    assert!(["Lapsed", "Gone"].contains(&&*reason), "{reason}");
    assert_eq!(other.says("unlocked").await, "WasLost");
    // Renewed since.
    tokio::time::sleep(LEASE).await;
    assert!(guard.is_valid() && third.locks("users").try_write("alice").await.unwrap().is_none());
    within("given back", guard.unlock()).await.unwrap();
    assert!(other.says_token("again").await > next_token);
}
