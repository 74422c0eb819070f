//! The gap between two holders of different clients.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use super::figures::{Times, ms, ratio};
use super::{client, group, raw};

const LEASE: Duration = Duration::from_secs(30);
const HOLD: Duration = Duration::from_millis(1);
const WARM_UP: Duration = Duration::from_secs(2);
const TIME: Duration = Duration::from_secs(6);

pub(crate) async fn run() {
    let floor = floor().await;
    println!("a node is removed, and another session hears of it: p50 {}", ms(floor));
    for contenders in [2, 8, 32] {
        let mut result = contend(contenders).await;
        let (p50, p99) = (result.gaps.quantile(0.5), result.gaps.quantile(0.99));
        println!(
            "{contenders:4} clients: gap p50 {:>9}  p99 {:>9}  {:5.2} and {:5.2} of that  {:6} hand-overs  most/fewest {:.2}",
            ms(p50),
            ms(p99),
            ratio(p50, floor),
            ratio(p99, floor),
            result.gaps.len(),
            result.unevenness,
        );
    }
}

/// From before a node is removed until another session is told: what there is to reach.
async fn floor() -> Duration {
    let (here, there) = (raw::Raw::connect().await, raw::Raw::connect().await);
    let mut times = Times::default();
    for _ in 0..1_000 {
        let path = here.make().await;
        let told = there.watch(&path).await;
        tokio::time::sleep(HOLD).await;
        let start = Instant::now();
        let (told, ()) = tokio::join!(
            async {
                told.changed().await;
                start.elapsed()
            },
            here.remove(&path)
        );
        times.push(told);
    }
    times.quantile(0.5)
}

struct Result {
    gaps: Times,
    unevenness: f64,
}

/// When the last release was called; the next one to get in takes it.
type Released = Arc<Mutex<Option<Instant>>>;

async fn contend(contenders: usize) -> Result {
    let group = group();
    let released: Released = Arc::default();
    let (counts, stop) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let mut clients = Vec::new();
    for _ in 0..contenders {
        clients.push(client(LEASE).await);
    }
    let workers: Vec<_> = clients
        .iter()
        .map(|client| {
            let locks = client.locks(group.clone());
            tokio::spawn(work(locks, released.clone(), counts.clone(), stop.clone()))
        })
        .collect();
    tokio::time::sleep(WARM_UP).await;
    counts.store(true, Ordering::Relaxed);
    tokio::time::sleep(TIME).await;
    counts.store(false, Ordering::Relaxed);
    stop.store(true, Ordering::Relaxed);
    let mut gaps = Times::default();
    let mut each = Vec::new();
    for worker in workers {
        let times = worker.await.expect("a worker");
        each.push(times.len());
        gaps.extend(times);
    }
    for client in clients {
        client.close().await;
    }
    let (most, fewest) = (each.iter().max().copied().unwrap_or(0), each.iter().min().copied().unwrap_or(0));
    Result { gaps, unevenness: most as f64 / fewest as f64 }
}

async fn work(
    locks: ylock_core::Locks,
    released: Released,
    counts: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
) -> Times {
    let mut gaps = Times::default();
    while !stop.load(Ordering::Relaxed) {
        let guard = locks.write("hot").await.expect("granted");
        let now = Instant::now();
        if let Some(before) = released.lock().await.take()
            && counts.load(Ordering::Relaxed)
        {
            gaps.push(now - before);
        }
        tokio::time::sleep(HOLD).await;
        *released.lock().await = Some(Instant::now());
        guard.unlock().await.expect("released");
    }
    gaps
}
