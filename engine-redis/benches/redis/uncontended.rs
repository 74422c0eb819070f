//! Acquire and release without contention, by one task or by many with names of their own.

use std::time::{Duration, Instant};

use super::client;
use super::raw::Raw;
use ylock_testkit::measure::{Times, group, ms};

const TIME: Duration = Duration::from_secs(2);
const ROUNDS: usize = 4;

struct Result {
    times: Times,
    pairs_per_second: f64,
}

/// Runs raw and engine in turns, so that what the machine does meanwhile hits both.
pub(crate) async fn run(tasks: usize) {
    let (mut raw, mut own): (Vec<Result>, Vec<Result>) = (Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let results = (pairs_raw(tasks).await, pairs_own(tasks).await);
        if round > 0 {
            raw.push(results.0);
            own.push(results.1);
        }
    }
    let (raw, own) = (sum(raw), sum(own));
    println!("{tasks} tasks, raw    {:10.0} pairs/s  p50 {}  p99 {}", raw.0, raw.1, raw.2);
    println!("{tasks} tasks, ylock  {:10.0} pairs/s  p50 {}  p99 {}", own.0, own.1, own.2);
    println!("ratio {:.3}", own.0 / raw.0);
}

fn sum(results: Vec<Result>) -> (f64, String, String) {
    let rate = results.iter().map(|result| result.pairs_per_second).sum::<f64>() / results.len() as f64;
    let mut times = Times::default();
    results.into_iter().for_each(|result| times.extend(result.times));
    (rate, ms(times.quantile(0.5)), ms(times.quantile(0.99)))
}

async fn pairs_raw(tasks: usize) -> Result {
    let (raw, group) = (Raw::connect().await, group());
    let workers = (0..tasks).map(|task| {
        let (mut raw, place) = (raw.clone(), format!("ylock:{{1}}:{}:{group}:{task}", group.len()));
        tokio::spawn(async move {
            let mut times = Times::default();
            let end = Instant::now() + TIME;
            while Instant::now() < end {
                let start = Instant::now();
                raw.pair(&place).await;
                times.push(start.elapsed());
            }
            times
        })
    });
    collect(workers.collect()).await
}

async fn pairs_own(tasks: usize) -> Result {
    let client = client(Duration::from_secs(30)).await;
    let locks = client.ylock.locks(group());
    let workers = (0..tasks).map(|task| {
        let locks = locks.clone();
        tokio::spawn(async move {
            let (mut times, name) = (Times::default(), task.to_string());
            let end = Instant::now() + TIME;
            while Instant::now() < end {
                let start = Instant::now();
                let guard = locks.write(name.as_str()).await.expect("granted");
                assert!(guard.unlock().await.expect("released").is_released());
                times.push(start.elapsed());
            }
            times
        })
    });
    let result = collect(workers.collect()).await;
    client.ylock.close().await;
    result
}

async fn collect(workers: Vec<tokio::task::JoinHandle<Times>>) -> Result {
    let mut times = Times::default();
    for worker in workers {
        times.extend(worker.await.expect("a worker"));
    }
    Result { pairs_per_second: times.len() as f64 / TIME.as_secs_f64(), times }
}
