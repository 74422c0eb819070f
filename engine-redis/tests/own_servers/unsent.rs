//! What a runtime had not sent yet when it stood still.

use std::collections::HashSet;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::runtime::Runtime;
use ylock_core::{Guard, Ylock};

use super::own_server::{Disk, OwnServer};
use super::runtimes::{of_one_thread, runtime};
use super::{LONG, client, until, within};

/// Returns the connections that a server has, by their numbers.
async fn connections(server: &OwnServer) -> HashSet<String> {
    let list: String = server.ask(&["CLIENT", "LIST"]).await.unwrap();
    list.lines().filter_map(|line| line.split(' ').next()).map(ToOwned::to_owned).collect()
}

/// Begins to acquire in a runtime that is not driven: the request lies in the connection, and is
/// not sent.
fn begins_in(still: &Runtime, ylock: &Ylock) -> BoxFuture<'static, ylock_core::Result<Guard>> {
    let locks = ylock.locks("users");
    let mut attempt = async move { locks.write("alice").await }.boxed();
    let _inside = still.enter();
    assert!(attempt.as_mut().now_or_never().is_none());
    attempt
}

#[test]
#[ignore = "needs redis: run `cargo xtask test`"]
fn a_request_of_a_runtime_that_stood_still_is_not_sent_later() {
    let (still, main) = (of_one_thread(), runtime());
    let server = main.block_on(OwnServer::start(Disk::Nothing));
    let one = still.block_on(client(&server, LONG));
    let scripts = async || server.calls("evalsha").await;
    // Driven in time, it is sent, also if its caller does not go on.
    let (before, attempt) = (main.block_on(scripts()), begins_in(&still, &one));
    still.block_on(async {
        until("it is sent", async || scripts().await > before).await;
        assert!(within("it gets in", attempt).await.unwrap().unlock().await.unwrap().is_released());
    });
    let (attempt, old) = (begins_in(&still, &one), main.block_on(connections(&server)));
    let before = main.block_on(async {
        drop(attempt);
        let guard = within("it gets in", one.locks("users").write("alice")).await.unwrap();
        assert!(within("given back", guard.unlock()).await.unwrap().is_released());
        scripts().await
    });
    // What a connection has sent is read before its end.
    let has_ended = async || connections(&server).await.is_disjoint(&old);
    still.block_on(until("what that runtime was connected by has ended", has_ended));
    assert_eq!(main.block_on(scripts()), before);
    let free = main.block_on(async { one.locks("users").write("alice").now().await });
    assert!(free.unwrap().is_some());
}

/// A caller waits over the same connection, which therefore does not end. Its answer comes after
/// all that was asked before.
#[test]
#[ignore = "needs redis: run `cargo xtask test`"]
fn a_request_of_a_runtime_that_stood_still_is_not_sent_beside_another_one() {
    let (still, main) = (of_one_thread(), runtime());
    let server = main.block_on(OwnServer::start(Disk::Nothing));
    let one = still.block_on(client(&server, LONG));
    let attempt = begins_in(&still, &one);
    let of_one = one.clone();
    let mut looks = async move { of_one.inspect("users", "bob").await }.boxed();
    {
        let _inside = still.enter();
        assert!(looks.as_mut().now_or_never().is_none());
    }
    let scripts = async || server.calls("evalsha").await;
    let before = main.block_on(async {
        drop(attempt);
        let guard = within("it gets in", one.locks("users").write("alice")).await.unwrap();
        assert!(within("given back", guard.unlock()).await.unwrap().is_released());
        scripts().await
    });
    still.block_on(within("it is shown", looks)).unwrap();
    assert_eq!(main.block_on(scripts()), before + 1);
}
