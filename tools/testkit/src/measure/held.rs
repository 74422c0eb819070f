//! Very many locks held by one process.

use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream};

use super::{Measured, Usage, group};

/// The number of acquisitions that are on their way at once.
const AT_ONCE: usize = 256;

/// Takes this many locks, holds them for this long, or for the minutes that `YLOCK_HELD_MINUTES` says, and prints what was lost and what it cost;
/// `meanwhile` is called while they are held. Closes the client.
pub async fn hold(client: Measured, count: usize, time: Duration, meanwhile: impl AsyncFnOnce()) {
    let minutes = std::env::var("YLOCK_HELD_MINUTES").ok().and_then(|minutes| minutes.parse().ok());
    let time = minutes.map_or(time, |minutes: f64| Duration::from_secs_f64(60.0 * minutes));
    let locks = client.ylock.locks(group());
    let start = Instant::now();
    let acquired = stream::iter(0..count).map(|name| {
        let locks = locks.clone();
        async move { locks.write(format!("name-{name}")).await.expect("granted") }
    });
    let guards: Vec<_> = acquired.buffer_unordered(AT_ONCE).collect().await;
    println!("{count} locks acquired in {:.1} s", start.elapsed().as_secs_f64());
    let (usage, requests, start) = (Usage::now(), client.requests(), Instant::now());
    let of_kind = client.requests_of_kind();
    tokio::time::sleep(time).await;
    let passed = start.elapsed().as_secs_f64();
    let lost = guards.iter().filter(|guard| !guard.is_valid()).count();
    println!(
        "held for {passed:.0} s: {lost} lost  (target 0), CPU of this process {:.1} % of one core, {:.0} requests/s",
        Usage::now().since(usage).cpu.as_secs_f64() / passed * 100.0,
        (client.requests() - requests) as f64 / passed
    );
    if let (Some((word, before)), Some((_, now))) = (of_kind, client.requests_of_kind()) {
        println!("of these {:.1} {word}/s", (now - before) as f64 / passed);
    }
    meanwhile().await;
    let start = Instant::now();
    drop(guards);
    client.ylock.close().await;
    println!("given back and closed in {:.1} s", start.elapsed().as_secs_f64());
}
