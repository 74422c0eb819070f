//! The time for which the locks of a killed process stay closed, and the time that one costs which was killed while it waited.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ylock_core::{Guard, Locks, Result, Ylock};

const HELD: &str = "held";
const ROUNDS: u32 = 3;

/// Kills the holder three times, each time this much later than its last sign of life, and prints how long it took until the next one was in.
/// `what` and `target` are words for that line; `role` is that of [`time_to_next`].
pub async fn run(role: &str, what: &str, target: &str, step: Duration, client: impl AsyncFn() -> Ylock) {
    for round in 1..=ROUNDS {
        let time = time_to_next(role, client().await, step * round, async |_| {}).await;
        let seconds = time.as_secs_f64();
        println!("kill -9 of the holder, {what}: next one in after {seconds:.2} s  (target {target})");
    }
}

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
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
    assert_eq!(line.trim(), HELD, "the other process holds the lock");
    let waiting = tokio::spawn(enter(locks));
    until_waiting(&waiter, &group, 1).await;
    tokio::time::sleep(after).await;
    let killed = Instant::now();
    kill(child);
    let (guard, entered) = waiting.await.expect("a task").expect("granted");
    drop(guard);
    waiter.close().await;
    entered - killed
}

/// Runs this program again with `role` and the name of a group as arguments, lets it wait for a lock that `holder` holds, before `next`, and kills
/// it. Some time after that the lock is given back. Returns how long it took then until `next` had it. Closes both clients.
///
/// # Panics
/// If the other process does not come to wait for the lock.
pub async fn time_past_killed(role: &str, holder: Ylock, next: Ylock, after: Duration) -> Duration {
    let group = super::group();
    let guard = holder.locks(group.clone()).write("name").await.expect("granted");
    let child = start(role, &group);
    until_waiting(&holder, &group, 1).await;
    let waiting = tokio::spawn(enter(next.locks(group.clone())));
    until_waiting(&holder, &group, 2).await;
    // Until each of them has found out that it can be told.
    tokio::time::sleep(Duration::from_secs(1)).await;
    kill(child);
    tokio::time::sleep(after).await;
    let released = Instant::now();
    assert!(guard.unlock().await.expect("an answer").is_released());
    let (guard, entered) = waiting.await.expect("a task").expect("granted");
    drop(guard);
    holder.close().await;
    next.close().await;
    entered - released
}

async fn enter(locks: Locks) -> Result<(Guard, Instant)> {
    locks.write("name").await.map(|guard| (guard, Instant::now()))
}

async fn until_waiting(ylock: &Ylock, group: &str, count: usize) {
    while ylock.inspect(group, "name").await.expect("answers").queue.len() < count {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn start(role: &str, group: &str) -> Child {
    let program = std::env::current_exe().expect("this program");
    Command::new(program).args([role, group]).stdout(Stdio::piped()).spawn().expect("started")
}

fn kill(mut child: Child) {
    child.kill().expect("killed");
    child.wait().expect("gone");
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
