//! Locks of PostgreSQL itself, as others use them: a session's advisory lock, tried every 50 ms, or waited for by a connection of its own.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio_postgres::Client;
use ylock_testkit::measure::{Times, ms};

use super::connect;

const HOLD: Duration = Duration::from_millis(1);
const TIME: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(50);

#[derive(Default)]
struct Seen {
    released: Option<Instant>,
    gaps: Times,
}

pub(crate) async fn run() {
    for contenders in [2, 8, 32] {
        for waits in [false, true] {
            measure(contenders, waits).await;
        }
    }
}

async fn measure(contenders: usize, waits: bool) {
    let (seen, end) = (Arc::new(Mutex::new(Seen::default())), Instant::now() + TIME);
    let mut tasks = Vec::new();
    for _ in 0..contenders {
        tasks.push(tokio::spawn(contend(connect().await, waits, Arc::clone(&seen), end)));
    }
    let mut turns = Vec::new();
    for task in tasks {
        turns.push(task.await.expect("no panic"));
    }
    let gaps = &mut seen.lock().gaps;
    let (most, fewest) = (turns.iter().max().expect("some"), turns.iter().min().expect("some"));
    println!(
        "{} {contenders:4} clients: gap p50 {:>9}  p99 {:>9}  {:6} hand-overs  most/fewest {most}/{fewest}",
        if waits {
            "pg_advisory_lock, a connection for each waiter"
        } else {
            "pg_try_advisory_lock every 50 ms              "
        },
        ms(gaps.quantile(0.5)),
        ms(gaps.quantile(0.99)),
        gaps.len(),
    );
}

async fn contend(client: Client, waits: bool, seen: Arc<Mutex<Seen>>, end: Instant) -> u64 {
    let lock = if waits { "select pg_advisory_lock(1)" } else { "select pg_try_advisory_lock(1)" };
    let (lock, unlock) = (client.prepare(lock).await, client.prepare("select pg_advisory_unlock(1)").await);
    let (lock, unlock) = (lock.expect("prepared"), unlock.expect("prepared"));
    let mut turns = 0;
    while Instant::now() < end {
        let row = client.query_one(&lock, &[]).await.expect("an answer");
        if !waits && !row.get::<_, bool>(0) {
            tokio::time::sleep(POLL).await;
            continue;
        }
        let released = seen.lock().released.take();
        if let Some(released) = released {
            seen.lock().gaps.push(released.elapsed());
        }
        turns += 1;
        tokio::time::sleep(HOLD).await;
        seen.lock().released = Some(Instant::now());
        client.execute(&unlock, &[]).await.expect("unlocked");
    }
    turns
}
