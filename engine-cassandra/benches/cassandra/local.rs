//! Many tasks of one client on one name, and reentry.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ylock_core::Owner;

use super::client;
use ylock_testkit::measure::group;

const TASKS: usize = 1_000;
const TIME: Duration = Duration::from_secs(5);
const REENTRIES: u32 = 1_000_000;

pub(crate) async fn run() {
    hand_overs().await;
    reentry().await;
}

async fn hand_overs() {
    let client = client(Duration::from_secs(30)).await;
    let locks = client.ylock.locks(group());
    let (count, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let tasks: Vec<_> = (0..TASKS)
        .map(|_| {
            let (locks, count, stop) = (locks.clone(), count.clone(), stop.clone());
            tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    drop(locks.write("hot").await.expect("granted"));
                    count.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let (before, requests) = (count.load(Ordering::Relaxed), client.requests());
    tokio::time::sleep(TIME).await;
    let done = count.load(Ordering::Relaxed) - before;
    let requests = client.requests() - requests;
    stop.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await.expect("a task");
    }
    println!(
        "{TASKS} tasks, hold 0: {:.0} hand-overs/s with {requests} requests  (target 50000)",
        done as f64 / TIME.as_secs_f64()
    );
    client.ylock.close().await;
}

async fn reentry() {
    let client = client(Duration::from_secs(30)).await;
    let owner = Owner::new();
    let locks = client.ylock.locks(group()).owned_by(&owner);
    let lock = locks.lock("name");
    let outer = lock.write().await.expect("granted");
    let requests = client.requests();
    for by_name in [false, true] {
        let start = Instant::now();
        for _ in 0..REENTRIES {
            let again = if by_name { locks.write("name").await } else { lock.write().await };
            drop(again.expect("granted"));
        }
        let each = start.elapsed() / REENTRIES;
        let how = if by_name { "Locks" } else { "Lock" };
        println!("reentry and its release by {how:5}: {} ns  (target 300 for the reentry)", each.as_nanos());
    }
    println!("store requests meanwhile: {}", client.requests() - requests);
    drop(outer);
    client.ylock.close().await;
}
