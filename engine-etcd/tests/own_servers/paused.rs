//! A client that stands still for longer than its lease, with all that it holds. It is a process of its own.

use ylock_core::url::Host;
use ylock_testkit::ChildProcess;

use super::own_cluster::Cluster;
use super::server::host;
use super::{LEASE, client, granted, queue_up, within};

/// The other process: holds until it was paused, and tells what it finds then.
async fn hold(server: Host) {
    let ylock = client(vec![server]).await;
    let guard = within("it gets in", ylock.locks("users").write("alice")).await.unwrap();
    ChildProcess::hold_through_pause(guard, LEASE).await;
    let again = within("it gets in again", ylock.locks("users").write("alice")).await.unwrap();
    ChildProcess::say(&format!("again {}", again.token().unwrap()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs etcd: run `cargo xtask test`"]
async fn a_holder_that_was_paused_knows_at_once_and_disturbs_no_other() {
    if let Some(server) = ChildProcess::told() {
        return hold(host(&server)).await;
    }
    let cluster = Cluster::start(1).await;
    let (next, third) = (client(cluster.hosts()).await, client(cluster.hosts()).await);
    let address = format!("127.0.0.1:{}", cluster.hosts()[0].port.unwrap());
    let test = "paused::a_holder_that_was_paused_knows_at_once_and_disturbs_no_other";
    let mut other = ChildProcess::start(test, &address);
    let token = other.says_token("holds").await;
    let waiting = queue_up(&next, &third).await;
    other.stop();
    let guard = granted(waiting).await;
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
