//! What the keeper costs, without a store: `cargo xtask bench core`.
//!
//! A plain program that measures many rounds and prints the best of several runs: on a machine that does other
//! things as well, the best is the one that was disturbed least.

#![allow(clippy::disallowed_methods, reason = "a measurement looks at real time and starts tasks of its own")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use ylock_core::{Lock, MemoryEngine, Owner, Ylock};
use ylock_testkit::{CountsCalls, Faulty};

const RUNS: usize = 7;

fn main() {
    println!("| what | each | per second | allocations | goal |");
    println!("|---|---|---|---|---|");
    let one = Builder::new_current_thread().enable_all().build().unwrap();
    row("enter again and give back, no call of the engine", "< 300 ns", || reenter(&one, 200_000));
    row("a try of a lock that is held here", "", || refused(&one, 200_000));
    row("acquire and give back, nobody else, in memory", "< 1 000 ns", || uncontended(&one, 20_000));
    row("`is_valid`", "", || is_valid(&one, 1_000_000));
    row("from task to task, 1 000 tasks, one thread", "", || hand_over(&one, 1_000, 20));
    let two = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    row("from task to task, 1 000 tasks, two threads", "", || hand_over(&two, 1_000, 20));
    row("acquire and give back, 1 000 tasks, a key each, two threads", "", || spread(&two, 1_000, 20));
}

/// What one round costs.
struct Round {
    time: Duration,
    /// Those of the main thread, which are all where the runtime has no other.
    allocations: f64,
}

/// Measures, if the command names this row or none: `cargo xtask bench core -- nobody`.
fn row(what: &str, goal: &str, measure: impl Fn() -> Round) {
    if std::env::args().skip(1).any(|word| !word.starts_with("--") && !what.contains(&word)) {
        return;
    }
    let Round { time, allocations } = best(measure);
    let per_second = 1.0 / time.as_secs_f64();
    println!("| {what} | {} ns | {per_second:.0} | {allocations:.1} | {goal} |", time.as_nanos());
}

fn best(measure: impl Fn() -> Round) -> Round {
    let mut rounds: Vec<_> = (0..RUNS).map(|_| measure()).collect();
    rounds.sort_unstable_by_key(|round| round.time);
    rounds.swap_remove(0)
}

fn timed(runtime: &Runtime, rounds: u32, work: impl Future<Output = ()>) -> Round {
    let start = Instant::now();
    let used = allocation_counter::measure(|| runtime.block_on(work));
    Round { time: start.elapsed() / rounds, allocations: used.count_total as f64 / f64::from(rounds) }
}

fn lock(runtime: &Runtime) -> Lock {
    runtime.block_on(async { Ylock::in_memory().lock("group", "name") })
}

fn reenter(runtime: &Runtime, rounds: u32) -> Round {
    let counts = Arc::new(CountsCalls::default());
    let engine = runtime.block_on(async { Arc::new(MemoryEngine::new()) });
    let lock = Ylock::from_arc(Faulty::over(engine, &counts)).lock("group", "name").owned_by(&Owner::new());
    let outer = runtime.block_on(lock.write()).unwrap();
    let calls = counts.all();
    let each = timed(runtime, rounds, async {
        for _ in 0..rounds {
            drop(black_box(lock.write().await.unwrap()));
        }
    });
    assert!(counts.all() <= calls + 1, "only a renewal may fall into the measurement");
    drop(outer);
    each
}

fn refused(runtime: &Runtime, rounds: u32) -> Round {
    let lock = lock(runtime);
    let guard = runtime.block_on(lock.write()).unwrap();
    let each = timed(runtime, rounds, async {
        for _ in 0..rounds {
            assert!(black_box(lock.write().now().await.unwrap()).is_none());
        }
    });
    drop(guard);
    each
}

fn uncontended(runtime: &Runtime, rounds: u32) -> Round {
    let lock = lock(runtime);
    timed(runtime, rounds, async {
        for _ in 0..rounds {
            let guard = lock.write().await.unwrap();
            assert!(black_box(guard.unlock().await.unwrap()).is_released());
        }
    })
}

fn is_valid(runtime: &Runtime, rounds: u32) -> Round {
    let lock = lock(runtime);
    let guard = runtime.block_on(lock.write()).unwrap();
    let each = timed(runtime, rounds, async {
        for _ in 0..rounds {
            assert!(black_box(guard.is_valid()));
        }
    });
    drop(guard);
    each
}

/// Many tasks want one lock, and each holds it until the others have had their turn to ask for it.
fn hand_over(runtime: &Runtime, tasks: u32, rounds: u32) -> Round {
    let lock = lock(runtime);
    timed(runtime, tasks * rounds, async move {
        all(tasks, |_| wait_for_turns(lock.clone(), rounds)).await;
    })
}

/// Many tasks, each with a lock of its own.
fn spread(runtime: &Runtime, tasks: u32, rounds: u32) -> Round {
    let locks = runtime.block_on(async { Ylock::in_memory().locks("group") });
    timed(runtime, tasks * rounds, async move {
        all(tasks, |task| take_turns(locks.lock(format!("{task}")), rounds)).await;
    })
}

async fn take_turns(lock: Lock, rounds: u32) {
    for _ in 0..rounds {
        drop(black_box(lock.write().await.unwrap()));
    }
}

async fn wait_for_turns(lock: Lock, rounds: u32) {
    for _ in 0..rounds {
        let guard = black_box(lock.write().await.unwrap());
        tokio::task::yield_now().await;
        drop(guard);
    }
}

async fn all<F: Future<Output = ()> + Send + 'static>(tasks: u32, work: impl Fn(u32) -> F) {
    let tasks: Vec<_> = (0..tasks).map(|task| tokio::spawn(work(task))).collect();
    for task in tasks {
        task.await.unwrap();
    }
}
