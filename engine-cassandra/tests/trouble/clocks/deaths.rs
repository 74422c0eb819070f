//! Clients that die while others wait for what they hold.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use ylock_core::{Guard, Ylock};
use ylock_testkit::{KillableEngine, eventually, within};

use super::clients::{NODES, Rule, over};
use super::set::Clocks;
use crate::{LEASE, cluster};

/// One dead holder at each node, and a waiter for each of them at each other one.
#[derive(Debug)]
pub(super) struct Deaths {
    since: Instant,
    waiters: Vec<Waiter>,
    // Dropped at the end: the dead have nothing to say any more.
    _dead: Vec<Ylock>,
}

#[derive(Debug)]
struct Waiter {
    held: Guard,
    task: JoinHandle<(Guard, Instant)>,
}

impl Deaths {
    /// Lets them all hold and wait, and then kills the holders.
    pub(super) async fn begin(rule: Rule, clocks: &Clocks, living: &[Ylock]) -> Self {
        let group = cluster::group();
        let begun = join_all(NODES.map(async |node| {
            let (engine, process) = KillableEngine::new(Arc::new(rule.engine(clocks, node).await));
            let (holder, group) = (over(engine), group.as_str());
            let others = living.iter().zip(NODES).filter(|(_, other)| *other != node);
            let waiters = others.map(async |(waiter, other)| {
                let name = format!("dies-{node}-{other}");
                let held = holder.locks(group).write(&name).await.unwrap();
                wait(waiter, group, name, held).await
            });
            (join_all(waiters).await, process, holder)
        }));
        let (mut waiters, mut dead) = (Vec::new(), Vec::new());
        for (its_waiters, process, holder) in begun.await {
            process.kill();
            waiters.extend(its_waiters);
            dead.push(holder);
        }
        Self { since: Instant::now(), waiters, _dead: dead }
    }

    /// Waits until each waiter has got in, and not before its holder had lost the lock by its own clock. Returns how long it took at most.
    pub(super) async fn passed(self) -> Duration {
        let passed = join_all(self.waiters.into_iter().map(async |Waiter { held, task }| {
            let (guard, at) = within(PATIENCE, "a dead holder is passed over", task).await.unwrap();
            assert!(guard.token() > held.token(), "tokens grow");
            assert!(guard.unlock().await.unwrap().is_released());
            at
        }));
        passed.await.into_iter().map(|at| at - self.since).max().expect("some have died")
    }
}

/// For what takes a lease, on a machine that is busy. What the servers count takes hours.
const PATIENCE: Duration = Duration::from_secs(2 * LEASE.as_secs());

/// Lets a client wait for a lock that is held, and returns when it is seen in the queue.
async fn wait(client: &Ylock, group: &str, name: String, held: Guard) -> Waiter {
    let locks = client.locks(group);
    let (wanted, held_by_the_dead) = (name.clone(), held.clone());
    let task = tokio::spawn(async move {
        let guard = locks.write(wanted).await.unwrap();
        assert!(!held_by_the_dead.is_valid(), "a holder is passed over that holds by its own clock");
        (guard, Instant::now())
    });
    let waits = || async { client.inspect(group, &name).await.unwrap().queue.len() == 1 };
    eventually(LEASE, "it waits", waits).await;
    Waiter { held, task }
}
