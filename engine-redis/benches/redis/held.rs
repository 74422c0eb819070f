//! A hundred thousand locks held by one process.

use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream};

use super::{client, group};

const LOCKS: usize = 100_000;
const LEASE: Duration = Duration::from_secs(30);
const TIME: Duration = Duration::from_secs(300);

pub(crate) async fn run() {
    let before = server_memory().await;
    let client = client(LEASE).await;
    let locks = client.ylock.locks(group());
    let start = Instant::now();
    let acquired = stream::iter(0..LOCKS).map(|name| {
        let locks = locks.clone();
        async move { locks.write(format!("name-{name}")).await.expect("granted") }
    });
    let guards: Vec<_> = acquired.buffer_unordered(256).collect().await;
    println!("{LOCKS} locks acquired in {:.1} s", start.elapsed().as_secs_f64());
    let (cpu, requests, start) = (cpu_seconds(), client.engine.requests(), Instant::now());
    tokio::time::sleep(TIME).await;
    let passed = start.elapsed().as_secs_f64();
    let lost = guards.iter().filter(|guard| !guard.is_valid()).count();
    println!(
        "held for {passed:.0} s, lease 30 s: {lost} lost  (target 0), CPU of this process {:.1} % of one core, {:.0} requests/s",
        (cpu_seconds() - cpu) / passed * 100.0,
        (client.engine.requests() - requests) as f64 / passed
    );
    println!(
        "memory of the server for each: {} bytes",
        server_memory().await.saturating_sub(before) / LOCKS as u64
    );
    let start = Instant::now();
    drop(guards);
    client.ylock.close().await;
    println!("given back and closed in {:.1} s", start.elapsed().as_secs_f64());
}

/// User and system time of this process so far.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks: f64 =
        after_name.split_whitespace().skip(11).take(2).filter_map(|n| n.parse::<f64>().ok()).sum();
    ticks / 100.0
}

async fn server_memory() -> u64 {
    let client = redis::Client::open(super::address()).expect("an address");
    let mut connection = client.get_multiplexed_async_connection().await.expect("the server answers");
    let mut command = redis::cmd("INFO");
    command.arg("memory");
    let said: String = command.query_async(&mut connection).await.expect("an answer");
    let used = said.lines().find_map(|line| line.strip_prefix("used_memory:"));
    used.and_then(|used| used.trim().parse().ok()).unwrap_or(0)
}
