//! Several free locks: one after the other, and at once as a set, in turns. And a semaphore that is busy, beside as many single locks.
//!
//! `cargo xtask bench many [-- ENGINE...]`; without a name every engine.
#![allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]
#![allow(missing_docs, reason = "a benchmark has no users")]

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use ylock::{Guard, Guards, Ylock};
use ylock_testkit::measure::{Times, group, ms, ratio};

/// How many locks.
const COUNTS: [u32; 5] = [1, 2, 5, 20, 100];
/// How long one number of locks is measured, and at most how often.
const TIME: Duration = Duration::from_secs(3);
const ROUNDS: usize = 400;

fn main() {
    let chosen: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let folder = std::env::temp_dir().join(format!("ylock-bench-many-{}", std::process::id()));
    let own = ["memory://".to_owned(), format!("file://{}", folder.display())];
    let servers = std::env::var("YLOCK_TEST_URLS").unwrap_or_default();
    let urls = own.into_iter().chain(servers.split_whitespace().map(str::to_owned));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    for url in urls {
        let engine = url.split("://").next().unwrap_or_default();
        if chosen.is_empty() || chosen.iter().any(|one| one == engine) {
            println!("\n## {engine}");
            runtime.block_on(measure(&url));
        }
    }
    // It is there only if files were measured.
    drop(std::fs::remove_dir_all(folder));
}

async fn measure(url: &str) {
    let ylock = ylock::connect(url).await.expect("the store answers");
    let group = group();
    // The first acquisition may have to connect.
    drop(ylock.lock(&*group, "first").write().await.expect("granted"));
    for count in COUNTS {
        let (mut singly, mut at_once, start) = (Times::default(), Times::default(), Instant::now());
        while start.elapsed() < TIME && at_once.len() < ROUNDS {
            singly.push(one_by_one(&ylock, &group, count).await);
            at_once.push(as_set(&ylock, &group, count).await);
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
    permits(url, &group).await;
}

/// How many want a permit, from how many clients, and how many there are.
const TASKS: usize = 32;
const CLIENTS: usize = 8;
const PERMITS: u32 = 20;
const HOLD: Duration = Duration::from_millis(5);

async fn permits(url: &str, group: &str) {
    let mut clients = vec![ylock::connect(url).await.expect("the store answers")];
    while clients.len() < CLIENTS {
        // In memory each connection would be a store of its own.
        let next = if url.starts_with("memory") {
            clients[0].clone()
        } else {
            ylock::connect(url).await.expect("it answers")
        };
        clients.push(next);
    }
    let semaphore = busy(&clients, async |ylock, _| {
        let permit = ylock.locks(group).semaphore("permits", PERMITS).acquire().await.expect("granted");
        tokio::time::sleep(HOLD).await;
        assert!(permit.unlock().await.expect("released").is_released());
    });
    let semaphore = semaphore.await;
    let singly = busy(&clients, async |ylock, task| {
        let guard = ylock.locks(group).write(task % PERMITS as usize).await.expect("granted");
        tokio::time::sleep(HOLD).await;
        assert!(guard.unlock().await.expect("released").is_released());
    });
    let singly = singly.await;
    println!(
        "{TASKS} tasks of {CLIENTS} clients, hold {} ms: {semaphore:.0} grants/s of {PERMITS} permits, {singly:.0} of {PERMITS} locks",
        HOLD.as_millis(),
    );
    for client in clients {
        client.close().await;
    }
}

/// Returns how often in a second `work` was done, by as many at once as there are tasks.
async fn busy(clients: &[Ylock], work: impl AsyncFn(&Ylock, usize)) -> f64 {
    let (start, work) = (Instant::now(), &work);
    let tasks = (0..TASKS).map(|task| async move {
        let mut done = 0;
        while start.elapsed() < TIME {
            work(&clients[task % CLIENTS], task).await;
            done += 1;
        }
        done
    });
    let done: u32 = join_all(tasks).await.into_iter().sum();
    f64::from(done) / start.elapsed().as_secs_f64()
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
    let (many, start) = ((0..count).fold(ylock.many(), |many, name| many.write(group, name)), Instant::now());
    let guards = many.acquire().await.expect("granted");
    give_back(guards, start).await
}

/// Returns the time since then, and gives the locks back, which is the same for both.
async fn give_back(guards: Guards, start: Instant) -> Duration {
    let took = start.elapsed();
    assert!(guards.unlock().await.expect("released").is_released());
    took
}
