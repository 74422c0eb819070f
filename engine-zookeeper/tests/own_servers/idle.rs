//! Clients that no caller uses for a while.

use ylock_core::engine::Engine;
use ylock_core::{Options, Ylock};
use ylock_engine_zookeeper::ZookeeperEngine;

use super::own_server::OwnServer;
use super::thief::Thief;
use super::{LEASE, options, until, within};

const SESSIONS: usize = 14;

/// A session ends while it has nothing on the servers, so no heartbeat finds out.
#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn sessions_that_ended_idle_leave_nothing() {
    let server = OwnServer::start().await;
    let thief = Thief::before(&server.host()).await;
    let engine = ZookeeperEngine::connect(&options(vec![thief.host()])).await.unwrap();
    let engine = std::sync::Arc::new(engine);
    let ylock = Ylock::from_arc(std::sync::Arc::clone(&engine) as _)
        .with_options(Options::default().with_lease(LEASE));
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let mut before = usize::MAX;
    for round in 0..SESSIONS {
        let guard = within("it gets in", ylock.locks("users").write("alice")).await.unwrap();
        assert!(guard.unlock().await.unwrap().is_released());
        until("nothing is left in memory", async || engine.in_memory().iter().all(|(_, count)| *count == 0))
            .await;
        if round == 1 {
            // Tasks that are started once are there by now.
            before = tasks();
        }
        thief.close_the_session().await;
        until("the client has found out", async || server.number("zk_global_sessions").await == 0).await;
    }
    // Some of the connections between client and thief may be just beginning or ending.
    println!("{before} tasks, then {}", tasks());
    until("no tasks are left of them", async || tasks() < before + SESSIONS / 2).await;
}
