//! A writer that waits behind a reader of its own client has a place in the queue that belongs to the reader's grant.

use tokio::task::JoinHandle;
use ylock_core::{Guard, Ylock};

use super::own_server::OwnServer;
use super::{LEASE, LOCK, LONG, contenders, until, within};

/// A reader, and a writer of the same client that is shown behind it.
async fn announced(ylock: &Ylock, server: &OwnServer) -> (Guard, JoinHandle<()>) {
    let reader = ylock.locks("users").read("alice").await.unwrap();
    let locks = ylock.locks("users");
    let writer = tokio::spawn(async move { drop(locks.write("alice").await) });
    until("it is shown", async || contenders(&[server.host()], LOCK).await.len() == 2).await;
    (reader, writer)
}

async fn patient(server: &OwnServer) -> Ylock {
    super::client_with(super::options(vec![server.host()]).with_lease(LONG)).await
}

async fn gives_up(writer: JoinHandle<()>) {
    writer.abort();
    drop(writer.await);
}

#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn a_writer_that_gave_up_behind_a_reader_of_its_client_keeps_nobody_out() {
    let server = OwnServer::start().await;
    let (here, there) = (patient(&server).await, patient(&server).await);
    for _ in 0..3 {
        let (reader, writer) = announced(&here, &server).await;
        gives_up(writer).await;
        assert!(reader.unlock().await.unwrap().is_released());
        drop(within("another client", there.locks("users").write("alice")).await.unwrap());
    }
}

#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn a_writer_that_gave_up_behind_a_reader_of_its_client_lets_readers_pass() {
    let server = OwnServer::start().await;
    let (here, there) = (patient(&server).await, patient(&server).await);
    let (reader, writer) = announced(&here, &server).await;
    gives_up(writer).await;
    drop(within("another reader", there.locks("users").read("alice")).await.unwrap());
    assert!(reader.unlock().await.unwrap().is_released());
}

/// The writer's own lease is shorter than the time between two renewals of the reader.
#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn a_writer_with_a_short_lease_stays_behind_a_reader_with_a_long_one() {
    let server = OwnServer::start().await;
    let calm = super::options(vec![server.host()]).with_lease(LONG);
    let here = super::client_with(calm).await;
    let reader = here.locks("users").read("alice").await.unwrap();
    let short = ylock_core::Options::default().with_lease(LEASE);
    let lock = here.lock("users", "alice").with_options(short);
    let writer = tokio::spawn(async move { drop(lock.write().await) });
    let hosts = [server.host()];
    until("it is shown", async || contenders(&hosts, LOCK).await.len() == 2).await;
    let before = contenders(&hosts, LOCK).await;
    tokio::time::sleep(LEASE * 2).await;
    assert_eq!(contenders(&hosts, LOCK).await, before);
    assert!(reader.unlock().await.unwrap().is_released());
    within("the writer gets in", writer).await.unwrap();
}
