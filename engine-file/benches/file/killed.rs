//! A holder, or the first of the queue, is killed: the time until the next one is in.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ylock_core::Ylock;
use ylock_testkit::measure::{Times, crash, group};

use crate::{HOLDER, client, folder::Folder};

pub(crate) const LEASE: Duration = Duration::from_secs(30);
/// The argument that makes a process a waiter.
pub(crate) const WAITER: &str = "waiter";
const ROUNDS: usize = 100;

pub(crate) async fn run() {
    let _folder = Folder::new();
    let (mut holder, mut head) = (Times::default(), Times::default());
    for _ in 0..ROUNDS {
        let waiter = client(LEASE).await.ylock;
        holder.push(crash::time_to_next(HOLDER, waiter, Duration::from_millis(20), async |_| {}).await);
        head.push(head_is_killed().await);
    }
    for (what, times) in [("a holder", &mut holder), ("the first of the queue, and released", &mut head)] {
        let us = |time: Duration| time.as_secs_f64() * 1e6;
        println!(
            "{what} is killed: the next one is in after p50 {:.0} µs  p99 {:.0} µs, the lease is {LEASE:?}",
            us(times.quantile(0.5)),
            us(times.quantile(0.99))
        );
    }
}

/// The first of the queue is killed, and at once the holder leaves: the time until the second is in.
async fn head_is_killed() -> Duration {
    let (holder, second) = (client(LEASE).await.ylock, client(LEASE).await.ylock);
    let group = group();
    let guard = holder.locks(group.as_str()).write("name").await.expect("granted");
    let waiters = async || holder.inspect(group.as_str(), "name").await.expect("answers").queue.len();
    let mut head = start(&group);
    while waiters().await < 1 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let locks = second.locks(group.as_str());
    let waits = tokio::spawn(async move { locks.write("name").await.map(|guard| (guard, Instant::now())) });
    while waiters().await < 2 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let killed = Instant::now();
    head.kill().expect("killed");
    drop(guard);
    let (guard, entered) = waits.await.expect("a task").expect("granted");
    drop(guard);
    head.wait().expect("gone");
    holder.close().await;
    second.close().await;
    entered - killed
}

fn start(group: &str) -> Child {
    let program = std::env::current_exe().expect("this program");
    Command::new(program).args([WAITER, group]).stdout(Stdio::null()).spawn().expect("started")
}

/// The work of such a waiter.
pub(crate) async fn wait(ylock: Ylock, group: &str) {
    let _guard = ylock.locks(group).write("name").await.expect("granted");
    std::future::pending::<()>().await;
}
