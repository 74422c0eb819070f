//! Several free locks: one after the other, and at once as a set, in turns. A semaphore that is busy, beside as many single locks. And ways to take locks
//! that are found while the work goes on.
//!
//! `cargo xtask bench many [-- ENGINE... PART...]`; without an engine all of them, without a part (`sets`, `permits`, `policies`) each.
#![allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]
#![allow(missing_docs, reason = "a benchmark has no users")]

mod clients;
mod permits;
mod policies;

use std::time::{Duration, Instant};

use ylock::{Guard, Guards, Ylock};
use ylock_testkit::measure::{Times, group, ms, ratio};

/// How many locks.
const COUNTS: [u32; 5] = [1, 2, 5, 20, 100];
/// How long one number of locks is measured, and at most how often.
const TIME: Duration = Duration::from_secs(3);
const ROUNDS: usize = 400;

const PARTS: [&str; 3] = ["sets", "permits", "policies"];

/// What the arguments name of these; all if they name none.
struct Chosen(Vec<String>);

impl Chosen {
    fn has(&self, one: &str) -> bool {
        self.0.is_empty() || self.0.iter().any(|named| named == one)
    }
}

fn main() {
    let arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let (parts, engines): (Vec<_>, Vec<_>) = arguments.partition(|named| PARTS.contains(&&**named));
    let (parts, engines) = (Chosen(parts), Chosen(engines));
    let folder = std::env::temp_dir().join(format!("ylock-bench-many-{}", std::process::id()));
    let own = ["memory://".to_owned(), format!("file://{}", folder.display())];
    let servers = std::env::var("YLOCK_TEST_URLS").unwrap_or_default();
    let urls = own.into_iter().chain(servers.split_whitespace().map(str::to_owned));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    for url in urls {
        let engine = url.split("://").next().unwrap_or_default();
        if engines.has(engine) {
            println!("\n## {engine}");
            runtime.block_on(measure(&url, &parts));
        }
    }
    // It is there only if files were measured.
    drop(std::fs::remove_dir_all(folder));
}

async fn measure(url: &str, parts: &Chosen) {
    let group = group();
    if parts.has("sets") {
        sets(url, &group).await;
    }
    let clients = clients::connect(url).await;
    if parts.has("permits") {
        permits::measure(&clients, &group).await;
    }
    if parts.has("policies") {
        policies::measure(&clients, &group).await;
    }
    clients::close(clients).await;
}

async fn sets(url: &str, group: &str) {
    let ylock = ylock::connect(url).await.expect("the store answers");
    // The first acquisition may have to connect.
    drop(ylock.lock(group, "first").write().await.expect("granted"));
    for count in COUNTS {
        let (mut singly, mut at_once, start) = (Times::default(), Times::default(), Instant::now());
        while start.elapsed() < TIME && at_once.len() < ROUNDS {
            singly.push(one_by_one(&ylock, group, count).await);
            at_once.push(as_set(&ylock, group, count).await);
        }
        let (rounds, singly, at_once) = (at_once.len(), singly.quantile(0.5), at_once.quantile(0.5));
        println!(
            "{count:>4} locks: one by one {}, at once {}, {:.2} times as fast ({rounds} rounds)",
            ms(singly),
            ms(at_once),
            ratio(singly, at_once)
        );
    }
    ylock.close().await;
}

/// Returns how long it takes to acquire that many locks one after the other.
async fn one_by_one(ylock: &Ylock, group: &str, count: u32) -> Duration {
    let (locks, start) = (ylock.locks(group), Instant::now());
    let mut guards: Vec<Guard> = Vec::new();
    for name in 0..count {
        guards.push(locks.write(name).await.expect("granted"));
    }
    give_back(guards.into_iter().collect(), start).await
}

/// Returns how long it takes to acquire that many locks at once.
async fn as_set(ylock: &Ylock, group: &str, count: u32) -> Duration {
    let (many, start) =
        ((0..count).fold(ylock.multi_lock(), |many, name| many.write(group, name)), Instant::now());
    let guards = many.acquire().await.expect("granted");
    give_back(guards, start).await
}

/// Returns the time since then, and gives the locks back, which is the same for both.
async fn give_back(guards: Guards, start: Instant) -> Duration {
    let took = start.elapsed();
    assert!(guards.unlock().await.expect("released").is_released());
    took
}
