//! A writer that becomes a reader has another node from then on, at the same place. A waiter that waits for the old node to go must not
//! take the change for its turn.

use std::time::Duration;

use ylock_core::{Guard, Mode, Ylock};

use super::own_server::OwnServer;
use super::server::proxy::{Link, Proxy};
use super::{client, queue_up, until, within};

/// For what must not happen. What would happen takes a few milliseconds.
const LONG_ENOUGH: Duration = Duration::from_millis(300);

async fn reads(ylock: &Ylock, guard: Guard) -> Guard {
    let guard = within("it becomes a reader", guard.downgrade()).await.unwrap();
    until("the server shows a reader", async || {
        let seen = ylock.inspect("users", "alice").await;
        seen.is_ok_and(|seen| seen.holders.iter().all(|holder| holder.mode == Mode::Read))
    })
    .await;
    guard
}

#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn who_waits_to_write_stays_behind_a_writer_that_becomes_a_reader() {
    let server = OwnServer::start().await;
    let (one, two) = (client(vec![server.host()]).await, client(vec![server.host()]).await);
    for _ in 0..5 {
        let guard = one.locks("users").write("alice").await.unwrap();
        let waiting = queue_up(&two, &one).await;
        let guard = reads(&one, guard).await;
        tokio::time::sleep(LONG_ENOUGH).await;
        assert!(guard.is_valid() && !waiting.is_finished(), "two are inside");
        assert!(within("given back", guard.unlock()).await.unwrap().is_released());
        assert!(within("the writer gets in", waiting).await.unwrap().unlock().await.unwrap().is_released());
    }
}

/// After the line was down the server tells the waiter only what has become of the node, and not how.
#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn who_waits_to_write_stays_behind_it_also_if_its_line_was_down_meanwhile() {
    let server = OwnServer::start().await;
    let proxy = Proxy::before(&[server.host()]).await;
    let (one, two) = (client(vec![server.host()]).await, client(proxy.hosts()).await);
    for _ in 0..3 {
        let guard = one.locks("users").write("alice").await.unwrap();
        let waiting = queue_up(&two, &one).await;
        until("it watches", async || server.number("zk_watch_count").await > 0).await;
        let lines = server.number("zk_num_alive_connections").await;
        proxy.set(Link::Cut);
        until("its line is down", async || server.number("zk_num_alive_connections").await < lines).await;
        let guard = reads(&one, guard).await;
        proxy.set(Link::Open);
        until("its line is back", async || server.number("zk_num_alive_connections").await == lines).await;
        tokio::time::sleep(LONG_ENOUGH).await;
        assert!(guard.is_valid() && !waiting.is_finished(), "two are inside");
        assert!(within("given back", guard.unlock()).await.unwrap().is_released());
        assert!(within("the writer gets in", waiting).await.unwrap().unlock().await.unwrap().is_released());
    }
}
