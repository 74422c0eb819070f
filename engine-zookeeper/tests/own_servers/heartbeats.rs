//! The number of heartbeats for what a client holds.

use super::own_server::OwnServer;
use super::{FLOOR_WATCH, LEASE, SESSION, client, until};

const LOCKS: u32 = 300;
/// Twenty heartbeats for each session, the client's own signs of life, and what is still asked once of each lock.
const MOST_PER_SESSION: u64 = 60;

/// Each renewal is due at a moment of its own.
#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn renewals_that_are_due_one_by_one_share_heartbeats() {
    let server = OwnServer::start().await;
    let ylock = client(vec![server.host()]).await;
    let (mut guards, mut beat) = (Vec::new(), tokio::time::interval(LEASE / 3 / LOCKS));
    for name in 0..LOCKS {
        beat.tick().await;
        guards.push(ylock.locks("users").write(name.to_string()).await.unwrap());
    }
    until("all are renewed once, and watched since", async || {
        server.number("zk_watch_count").await == u64::from(LOCKS) + FLOOR_WATCH
    })
    .await;
    let before = server.number("zk_packets_received").await;
    tokio::time::sleep(SESSION * 3).await;
    let asked = server.number("zk_packets_received").await - before;
    println!("{asked} requests in three sessions of {SESSION:?}");
    assert!(asked < MOST_PER_SESSION * 3, "{asked} requests for {LOCKS} locks");
    assert!(guards.iter().all(|guard| guard.is_valid()));
    for guard in guards {
        assert!(guard.unlock().await.unwrap().is_released());
    }
}
