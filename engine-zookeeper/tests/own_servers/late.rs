//! Requests that arrive when their client has long given them up.

use std::time::Duration;

use ylock_core::Ylock;

use super::own_server::OwnServer;
use super::server::proxy::{Link, Proxy};
use super::{LOCK, client_with, contenders, options, until, within};

/// For what must not happen. What would happen takes a few milliseconds.
const LONG_ENOUGH: Duration = Duration::from_millis(300);

async fn warm(server: &OwnServer) -> (Proxy, Ylock) {
    let proxy = Proxy::before(&[server.host()]).await;
    // Its session outlives the time in which its driver finds out, also on a busy machine.
    let here = client_with(options(proxy.hosts()).with_lease(Duration::from_secs(10))).await;
    assert!(here.locks("users").write("alice").await.unwrap().unlock().await.unwrap().is_released());
    (proxy, here)
}

/// The client has another connection by then, and the server refuses what still comes over the old one.
#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn a_request_that_arrives_over_an_old_connection_makes_no_node() {
    let server = OwnServer::start().await;
    for _ in 0..2 {
        let (proxy, here) = warm(&server).await;
        let held = here.locks("users").write("bob").await.unwrap();
        proxy.set(Link::Late);
        let locks = here.locks("users");
        let waiting = tokio::spawn(async move { drop(locks.write("alice").await) });
        until("its request is on its way", async || proxy.kept() > 0).await;
        waiting.abort();
        // The client finds out that its connection is of no use, and makes another one.
        until("it is undone", async || here.keys_in_use() == 1).await;
        assert!(held.is_valid(), "the session goes on");
        proxy.set(Link::Open);
        until("it has arrived", async || proxy.kept() == 0).await;
        tokio::time::sleep(LONG_ENOUGH).await;
        assert!(contenders(&[server.host()], LOCK).await.is_empty());
        assert!(within("given back", held.unlock()).await.unwrap().is_released());
    }
}
