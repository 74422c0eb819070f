//! The gap between two holders of different clients, and what it costs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use super::figures::{Times, ms, ratio};
use super::{Client, client, group};

const LEASE: Duration = Duration::from_secs(30);
const HOLD: Duration = Duration::from_millis(1);
const WARM_UP: Duration = Duration::from_secs(2);
const TIME: Duration = Duration::from_secs(6);

pub(crate) async fn run() {
    let ping = ping().await;
    println!("one round trip p50 {}", ms(ping));
    for contenders in [2, 8, 32, 1_000] {
        let mut result = contend(contenders).await;
        let (p50, p99) = (result.gaps.quantile(0.5), result.gaps.quantile(0.99));
        println!(
            "{contenders:4} clients: gap p50 {:>9}  p99 {:>9}  {:5.2} and {:5.2} round trips  {:5.2} requests  {:6} hand-overs  most/fewest {:.2}",
            ms(p50),
            ms(p99),
            ratio(p50, ping),
            ratio(p99, ping),
            result.requests as f64 / result.gaps.len().max(1) as f64,
            result.gaps.len(),
            result.unevenness,
        );
    }
}

/// A round trip that comes a millisecond after the last one, as those of waiters do.
async fn ping() -> Duration {
    let client = redis::Client::open(super::address()).expect("an address");
    let mut connection = client.get_multiplexed_async_connection().await.expect("the server answers");
    let mut times = Times::default();
    for _ in 0..2_000 {
        tokio::time::sleep(HOLD).await;
        let start = Instant::now();
        redis::cmd("PING").exec_async(&mut connection).await.expect("an answer");
        times.push(start.elapsed());
    }
    times.quantile(0.5)
}

struct Result {
    gaps: Times,
    requests: u64,
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
            let locks = client.ylock.locks(group.clone());
            tokio::spawn(work(locks, released.clone(), counts.clone(), stop.clone()))
        })
        .collect();
    tokio::time::sleep(WARM_UP).await;
    let before = requests(&clients);
    counts.store(true, Ordering::Relaxed);
    tokio::time::sleep(TIME).await;
    counts.store(false, Ordering::Relaxed);
    let requests = requests(&clients) - before;
    stop.store(true, Ordering::Relaxed);
    let mut gaps = Times::default();
    let mut each = Vec::new();
    for worker in workers {
        let times = worker.await.expect("a worker");
        each.push(times.len());
        gaps.extend(times);
    }
    for client in clients {
        client.ylock.close().await;
    }
    let (most, fewest) = (each.iter().max().copied().unwrap_or(0), each.iter().min().copied().unwrap_or(0));
    Result { gaps, requests, unevenness: most as f64 / fewest as f64 }
}

fn requests(clients: &[Client]) -> u64 {
    clients.iter().map(|client| client.engine.requests()).sum()
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
