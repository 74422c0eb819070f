//! The time for which the locks of a killed process stay closed.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ylock_core::{Locks, Ylock};

const HELD: &str = "held";

/// Runs this program again with `role` and the name of a group as arguments, kills it while it holds a lock, some time after it got
/// it, and returns how long it took until `waiter` had the lock. Closes the waiter. `prepare` is done before, with locks of the waiter of which
/// one is called `name`: that is the lock.
///
/// # Panics
/// If the other process does not come to hold the lock.
pub async fn time_to_next(
    role: &str,
    waiter: Ylock,
    after: Duration,
    prepare: impl AsyncFnOnce(&Locks),
) -> Duration {
    let group = super::group();
    let locks = waiter.locks(group.clone());
    prepare(&locks).await;
    let mut child = start(role, &group);
    let waiting = tokio::spawn(async move { locks.write("name").await.map(|guard| (guard, Instant::now())) });
    while waiter.inspect(group.clone(), "name").await.expect("answers").queue.is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    tokio::time::sleep(after).await;
    let killed = Instant::now();
    child.kill().expect("killed");
    child.wait().expect("gone");
    let (guard, entered) = waiting.await.expect("a task").expect("granted");
    drop(guard);
    waiter.close().await;
    entered - killed
}

fn start(role: &str, group: &str) -> Child {
    let program = std::env::current_exe().expect("this program");
    let mut child =
        Command::new(program).args([role, group]).stdout(Stdio::piped()).spawn().expect("started");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
    assert_eq!(line.trim(), HELD, "the other process holds the lock");
    child
}

/// Holds a lock until the process is killed.
///
/// # Panics
/// If the lock is not granted.
pub async fn hold_until_killed(ylock: Ylock, group: &str) {
    let _guard = ylock.locks(group).write("name").await.expect("granted");
    println!("{HELD}");
    std::future::pending::<()>().await;
}
