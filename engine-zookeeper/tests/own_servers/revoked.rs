//! Revocations that meet what the holder does at the same moment.

use std::time::Duration;

use ylock_core::{LossReason, Unlocked};

use super::own_server::OwnServer;
use super::{client, contenders, until, within};

const ROUNDS: u64 = 120;

/// The downgrade replaces the node that the revocation has marked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn a_revocation_that_meets_a_downgrade_is_told() {
    let server = OwnServer::start().await;
    let (here, there) = (client(vec![server.host()]).await, client(vec![server.host()]).await);
    let mut revoked = Vec::new();
    for round in 0..ROUNDS {
        let name = format!("n{round}");
        let guard = here.locks("users").write(name.clone()).await.unwrap();
        let (there, other) = (there.clone(), name.clone());
        let revoking = tokio::spawn(async move { there.revoke("users", other).await.unwrap() });
        tokio::time::sleep(Duration::from_micros(round * 25)).await;
        let downgraded = guard.downgrade().await;
        if let (1, Ok(guard)) = (revoking.await.unwrap(), downgraded) {
            revoked.push(guard);
        }
    }
    assert!(!revoked.is_empty(), "no revocation has met a downgrade");
    for guard in revoked {
        let reason = within("no revocation is lost", guard.lost()).await;
        assert_eq!(reason, LossReason::Revoked);
        assert_eq!(within("given back", guard.unlock()).await.unwrap(), Unlocked::WasLost);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn a_revocation_that_meets_a_downgrade_and_a_release_leaves_nothing() {
    let server = OwnServer::start().await;
    let (here, there) = (client(vec![server.host()]).await, client(vec![server.host()]).await);
    for round in 0..ROUNDS {
        let guard = here.locks("users").write("alice").await.unwrap();
        let revoker = there.clone();
        let revoking = tokio::spawn(async move { revoker.revoke("users", "alice").await });
        tokio::time::sleep(Duration::from_micros(round * 25)).await;
        let polls = tokio::time::timeout(Duration::from_micros(round % 7 * 100), guard.downgrade()).await;
        drop(polls);
        drop(within("the revocation ends", revoking).await.unwrap());
        drop(within("another one gets in", there.locks("users").write("alice")).await.unwrap());
    }
    let left = async || contenders(&[server.host()], super::LOCK).await.is_empty();
    until("nothing is left", left).await;
}
