//! A runtime that stands still while its client is used in another one.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::runtime::{Builder, Runtime};
use ylock_core::{Guard, Ylock};

use super::own_server::{LOGGED, OwnServer};
use super::{LONG, acquire, client, is_held, unlock, until, within};

/// The numbers of the processes of the server for the connections of clients for locks.
async fn processes(server: &OwnServer) -> Vec<i32> {
    let statement = "select pid from pg_stat_activity where application_name = 'ylock'";
    server.client().await.query(statement, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

/// Returns whether a process has written these words into the log of the server.
fn has_said(server: &OwnServer, process: i32, words: &str) -> bool {
    let process = format!("[{process}]");
    server.log().lines().any(|line| line.contains(&process) && line.contains(words))
}

/// Returns what a log says for the key of a lock.
fn key_of(name: &str) -> String {
    [&b"users"[..], &[0xff], name.as_bytes()].concat().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Begins to acquire in a runtime that is not driven: the request lies in the connection, and is
/// not sent.
fn begins_in(
    still: &Runtime,
    ylock: &Ylock,
    name: &'static str,
) -> BoxFuture<'static, ylock_core::Result<Guard>> {
    let locks = ylock.locks("users");
    let mut attempt = async move { locks.write(name).await }.boxed();
    let _inside = still.enter();
    assert!(attempt.as_mut().now_or_never().is_none());
    attempt
}

#[test]
#[ignore = "needs postgres: run `cargo xtask test`"]
fn a_request_of_a_runtime_that_stood_still_is_not_sent_later() {
    let still = Builder::new_current_thread().enable_all().build().unwrap();
    let main = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let settings = [&LOGGED[..], &["log_disconnections=on"]].concat();
    let server = main.block_on(OwnServer::start_with(&settings, &[]));
    let one = still.block_on(client(&server, LONG));
    let old = main.block_on(processes(&server));
    let says = |words: &str| old.iter().any(|process| has_said(&server, *process, words));
    // Driven in time, it is sent, also if its caller does not go on. From then on the statement is
    // prepared, and an acquisition is one message.
    let attempt = begins_in(&still, &one, "bob");
    still.block_on(async {
        until("it is sent", async || says(&key_of("bob"))).await;
        unlock(within("it gets in", attempt).await.unwrap()).await;
    });
    let attempt = begins_in(&still, &one, "alice");
    main.block_on(async {
        drop(attempt);
        unlock(acquire(&one).await).await;
        // Before that runtime goes on, and the last that is heard of them.
        let ended = |process: &i32| has_said(&server, *process, "disconnection");
        until("what that runtime was connected by has ended", async || old.iter().all(ended)).await;
    });
    still.block_on(async { assert!(!is_held(&one).await) });
    assert!(!says(&key_of("alice")));
}
