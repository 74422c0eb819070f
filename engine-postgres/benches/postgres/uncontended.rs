//! Acquire and release without contention, by one task, beside raw.

use std::time::{Duration, Instant};

use ylock_core::Locks;
use ylock_testkit::measure::{Times, group, ms, ratio};

use super::client;
use super::raw::Raw;

const LEASE: Duration = Duration::from_secs(30);
const TIME: Duration = Duration::from_secs(2);
const ROUNDS: usize = 3;

/// Runs raw and engine in turns, so that what the machine does meanwhile hits both.
pub(crate) async fn run() {
    let (raw, client) = (Raw::connect().await, client(LEASE).await);
    let locks = client.ylock.locks(group());
    let (mut of_raw, mut of_own) = (Times::default(), Times::default());
    for round in 0..=ROUNDS {
        let (raw, own) = (timed(async || raw.pair().await).await, timed(async || pair(&locks).await).await);
        // The first one warms up.
        if round > 0 {
            of_raw.extend(raw);
            of_own.extend(own);
        }
    }
    let (raw, own) = (of_raw.quantile(0.5), of_own.quantile(0.5));
    println!("a pair, raw   p50 {}  p99 {}", ms(raw), ms(of_raw.quantile(0.99)));
    println!(
        "a pair, ylock p50 {}  p99 {}  {:.2} of raw",
        ms(own),
        ms(of_own.quantile(0.99)),
        ratio(own, raw)
    );
    client.ylock.close().await;
}

async fn pair(locks: &Locks) {
    let guard = locks.write("0").await.expect("granted");
    assert!(guard.unlock().await.expect("released").is_released());
}

async fn timed(work: impl AsyncFn()) -> Times {
    let (mut times, end) = (Times::default(), Instant::now() + TIME);
    while Instant::now() < end {
        let start = Instant::now();
        work().await;
        times.push(start.elapsed());
    }
    times
}
