//! How long the locks of a killed process stay closed.

use std::process::Stdio;
use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use super::client;
use ylock_core::testkit::measure::group;

/// The first argument of the process that is killed.
pub(crate) const ROLE: &str = "hold-until-killed";
const LEASE: Duration = Duration::from_secs(5);
const ROUNDS: usize = 3;

pub(crate) async fn run() {
    let ttl = Duration::from_secs(5 + 1 + 2);
    for round in 1..=ROUNDS {
        let group = group();
        let mut child = start(&group).await;
        let waiter = client(LEASE).await;
        let locks = waiter.ylock.locks(group.clone());
        let waiting =
            tokio::spawn(async move { locks.write("name").await.map(|guard| (guard, Instant::now())) });
        while waiter.ylock.inspect(group.clone(), "name").await.expect("answers").queue.is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        // Somewhere between two renewals.
        tokio::time::sleep(Duration::from_millis(700 * round as u64)).await;
        let killed = Instant::now();
        child.start_kill().expect("killed");
        child.wait().await.expect("gone");
        let (guard, entered) = waiting.await.expect("a task").expect("granted");
        println!(
            "kill -9 of the holder, lease 5 s: next one in after {:.2} s  (target {} s)",
            (entered - killed).as_secs_f64(),
            ttl.as_secs() + 1
        );
        drop(guard);
        waiter.ylock.close().await;
    }
}

async fn start(group: &str) -> Child {
    let program = std::env::current_exe().expect("this program");
    let mut command = Command::new(program);
    command.args([ROLE, group, &LEASE.as_secs().to_string()]).stdout(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().expect("started");
    let mut line = String::new();
    let out = child.stdout.take().expect("piped");
    BufReader::new(out).read_line(&mut line).await.expect("a line");
    assert_eq!(line.trim(), "held", "the other process holds the lock");
    child
}

pub(crate) async fn hold_until_killed(group: &str, lease: &str) {
    let client = client(Duration::from_secs(lease.parse().expect("seconds"))).await;
    let _guard = client.ylock.locks(group).write("name").await.expect("granted");
    println!("held");
    std::future::pending::<()>().await;
}
