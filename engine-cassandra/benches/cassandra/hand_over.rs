//! The gap between two holders of different clients, and what it costs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Mutex;
use ylock_core::Key;
use ylock_core::environment::SystemEnvironment;
use ylock_engine_cassandra::algorithm::store::{Slot, State, Store};
use ylock_engine_cassandra::driver::Table;

use super::figures::{Times, ms, ratio};
use super::{Client, client, group};

const LEASE: Duration = Duration::from_secs(30);
const HOLD: Duration = Duration::from_millis(5);
const WARM_UP: Duration = Duration::from_secs(4);
const TIME: Duration = Duration::from_secs(10);

pub(crate) async fn run() {
    let read = raw_read(2, Duration::ZERO).await;
    println!("raw quorum read of  2 rows p50 {:>10}", ms(read));
    println!("the same, 5 ms apart       p50 {:>10}", ms(raw_read(2, HOLD).await));
    println!("raw quorum read of 64 rows p50 {:>10}", ms(raw_read(64, Duration::ZERO).await));
    let mut at_two = Duration::ZERO;
    for contenders in [1, 2, 8, 32, 64] {
        let mut result = contend(contenders).await;
        let (p50, p99) = (result.gaps.quantile(0.5), result.gaps.quantile(0.99));
        if contenders == 2 {
            at_two = p50;
        }
        println!(
            "{contenders:2} clients: gap p50 {:>10}  p99 {:>10}  {:5.2} x read  {:5.2} x at two  {:5.1} requests  {:6} hand-overs  most/fewest {:.2}",
            ms(p50),
            ms(p99),
            ratio(p50, read),
            ratio(p50, at_two.max(Duration::from_nanos(1))),
            result.requests as f64 / result.gaps.len().max(1) as f64,
            result.gaps.len(),
            result.unevenness,
        );
    }
}

/// The median of reading a partition as so many clients leave it behind, one time after the other with a pause between.
async fn raw_read(rows: u128, pause: Duration) -> Duration {
    let environment = SystemEnvironment::shared();
    let table = Table::connect(&super::options(LEASE), &environment).await.expect("the cluster answers");
    let key = Key::new(group(), "raw").expect("a key");
    for slot in 0..rows {
        let row = super::uncontended::write(State::Idle, true);
        table.write(&key, Slot::from_u128(1 << 100 | slot), &row).await.expect("written");
    }
    let mut times = Times::default();
    let rounds = if pause.is_zero() { 4_000 } else { 1_000 };
    for round in 0..rounds {
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        let start = Instant::now();
        table.read(&key).await.expect("read");
        if round >= rounds / 2 {
            times.push(start.elapsed());
        }
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
