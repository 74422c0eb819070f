//! Acquire and release without contention: in memory, in files, and the bare calls of the system, in turns.

use std::time::{Duration, Instant};

use ylock_core::Ylock;
use ylock_testkit::measure::{Times, group, pairs};

use crate::{client, folder::Folder, raw};

const ROUNDS: usize = 5;
const PAIRS: usize = 20_000;

pub(crate) async fn run() {
    let _folder = Folder::new();
    let (file, memory) = (client(Duration::from_secs(30)).await.ylock, Ylock::in_memory());
    let group = group();
    let (in_files, in_memory) = (file.locks(group.clone()), memory.locks(group));
    let mut all =
        [("in memory", Times::default()), ("in files", Times::default()), ("bare calls", Times::default())];
    for round in 0..=ROUNDS {
        let times = [pairs(&in_memory, "name", PAIRS).await, pairs(&in_files, "name", PAIRS).await, bare()];
        // The first one warms up.
        if round > 0 {
            all.iter_mut().zip(times).for_each(|((_, all), times)| all.extend(times));
        }
    }
    for (what, times) in &mut all {
        let mut us = |part| times_us(times.quantile(part));
        println!("{what:10} pair: p50 {}  p99 {}", us(0.5), us(0.99));
    }
    file.close().await;
}

fn times_us(time: Duration) -> String {
    format!("{:.2} µs", time.as_secs_f64() * 1e6)
}

fn bare() -> Times {
    let file = Folder::path().join("raw");
    let mut times = Times::default();
    for _ in 0..PAIRS {
        let start = Instant::now();
        raw::pair(&file);
        times.push(start.elapsed());
    }
    times
}
