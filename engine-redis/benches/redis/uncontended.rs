//! Acquire and release without contention, by one task or by many with names of their own.

use std::time::{Duration, Instant};

use ylock_core::Locks;
use ylock_testkit::measure::{Times, Usage, futex_calls_in_a_second, group, ms};

use super::client;
use super::raw::Raw;

const TIME: Duration = Duration::from_secs(2);
const ROUNDS: usize = 4;

#[derive(Default)]
struct Figures {
    times: Times,
    usage: Usage,
    /// Of the round in which they were counted, which is not timed: counting costs something as well.
    futex_calls_each: Option<f64>,
}

impl Figures {
    fn add(&mut self, round: (Times, Usage)) {
        self.times.extend(round.0);
        self.usage = self.usage.and(round.1);
    }

    fn rate(&self) -> f64 {
        self.times.len() as f64 / (TIME * ROUNDS as u32).as_secs_f64()
    }

    fn print(&mut self, what: &str) {
        let (p50, p99) = (ms(self.times.quantile(0.5)), ms(self.times.quantile(0.99)));
        println!("{what:20} {:10.0} pairs/s  p50 {p50}  p99 {p99}", self.rate());
        let count = self.times.len() as f64;
        let futex = self.futex_calls_each.map_or("not counted".to_owned(), |calls| format!("{calls:.2}"));
        println!(
            "{what:20} each pair: CPU of the client {:.2} µs, context switches {:.2}, futex calls {futex}",
            self.usage.cpu.as_secs_f64() * 1e6 / count,
            self.usage.switches as f64 / count,
        );
    }
}

/// Runs raw and engine in turns, so that what the machine does meanwhile hits both.
pub(crate) async fn run(tasks: usize) {
    let (mut raw, mut own) = (Figures::default(), Figures::default());
    for round in 0..=ROUNDS {
        let (of_raw, of_own) = (pairs_raw(tasks).await, pairs_own(tasks).await);
        // The first one warms up.
        if round > 0 {
            raw.add(of_raw);
            own.add(of_own);
        }
    }
    raw.futex_calls_each = futex_calls(pairs_raw(tasks)).await;
    own.futex_calls_each = futex_calls(pairs_own(tasks)).await;
    raw.print(&format!("{tasks} tasks, raw"));
    own.print(&format!("{tasks} tasks, ylock"));
    println!("ratio {:.3}", own.rate() / raw.rate());
}

async fn futex_calls(pairs: impl Future<Output = (Times, Usage)>) -> Option<f64> {
    let (calls, (times, _)) = tokio::join!(futex_calls_in_a_second(), pairs);
    Some(calls? / (times.len() as f64 / TIME.as_secs_f64()))
}

async fn pairs_raw(tasks: usize) -> (Times, Usage) {
    let (raw, group) = (Raw::connect().await, group());
    work(tasks, |task| {
        let (mut raw, place) = (raw.clone(), format!("ylock:{{1}}:{}:{group}:{task}", group.len()));
        async move {
            let mut times = Times::default();
            let end = Instant::now() + TIME;
            while Instant::now() < end {
                let start = Instant::now();
                raw.pair(&place).await;
                times.push(start.elapsed());
            }
            times
        }
    })
    .await
}

async fn pairs_own(tasks: usize) -> (Times, Usage) {
    let client = client(Duration::from_secs(30)).await;
    let locks = client.ylock.locks(group());
    let result = work(tasks, |task| own_worker(locks.clone(), task)).await;
    client.ylock.close().await;
    result
}

async fn own_worker(locks: Locks, task: usize) -> Times {
    let (mut times, name) = (Times::default(), task.to_string());
    let end = Instant::now() + TIME;
    while Instant::now() < end {
        let start = Instant::now();
        let guard = locks.write(name.as_str()).await.expect("granted");
        assert!(guard.unlock().await.expect("released").is_released());
        times.push(start.elapsed());
    }
    times
}

/// Lets these workers work, and returns their times and what they used.
async fn work<F: Future<Output = Times> + Send + 'static>(
    tasks: usize,
    worker: impl Fn(usize) -> F,
) -> (Times, Usage) {
    let before = Usage::now();
    let workers: Vec<_> = (0..tasks).map(|task| tokio::spawn(worker(task))).collect();
    let mut times = Times::default();
    for worker in workers {
        times.extend(worker.await.expect("a worker"));
    }
    (times, Usage::now().since(before))
}
