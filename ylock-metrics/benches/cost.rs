//! What the layers cost: `cargo bench -p ylock-metrics`. With and without, by turns, in one run.

#![allow(clippy::disallowed_methods, reason = "a measurement looks at real time")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use metrics_exporter_prometheus::PrometheusBuilder;
use tokio::runtime::{Builder, Runtime};
use ylock_core::layer::TracingLayer;
use ylock_core::{Lock, Owner, Ylock};
use ylock_metrics::{MetricsLayer, prometheus};

const RUNS: usize = 15;
const ROUNDS: u32 = 20_000;

fn main() {
    let one = Builder::new_current_thread().enable_all().build().unwrap();
    let two = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    println!(
        "| what, each with its release | without | with metrics | more | with spans that nobody wants | with events |"
    );
    println!("|---|---|---|---|---|---|");
    row("acquire, nobody else, in memory", |client| uncontended(&one, client));
    row("enter again", |client| reenter(&one, client));
    row("acquire, 100 tasks, a key each, two threads", |client| spread(&two, client));
}

fn row(what: &str, measure: impl Fn(&Ylock) -> Duration) {
    let recorder = prometheus::buckets(PrometheusBuilder::new()).build_recorder();
    let handle = recorder.handle();
    let metrics = MetricsLayer::to(Arc::new(recorder));
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let plain = || runtime.block_on(async { Ylock::in_memory() });
    let heard = plain();
    let _events = heard.events();
    let clients = [plain(), plain().layer(metrics), plain().layer(TracingLayer::new()), heard];
    let mut best = [Duration::MAX; 4];
    for _ in 0..RUNS {
        for (best, client) in best.iter_mut().zip(&clients) {
            *best = measure(client).min(*best);
            // What a scrape every few seconds does: the recorder keeps what was recorded until then.
            handle.run_upkeep();
        }
    }
    let [without, with, spans, events] = best.map(|best| best.as_nanos() as i64);
    println!("| {what} | {without} ns | {with} ns | {} ns | {spans} ns | {events} ns |", with - without);
}

fn timed(runtime: &Runtime, rounds: u32, work: impl Future<Output = ()>) -> Duration {
    let start = Instant::now();
    runtime.block_on(work);
    start.elapsed() / rounds
}

fn uncontended(runtime: &Runtime, client: &Ylock) -> Duration {
    let lock = client.lock("group", "name");
    timed(runtime, ROUNDS, rounds(lock, ROUNDS))
}

async fn rounds(lock: Lock, rounds: u32) {
    for _ in 0..rounds {
        assert!(black_box(lock.write().await.unwrap()).unlock().await.unwrap().is_released());
    }
}

fn reenter(runtime: &Runtime, client: &Ylock) -> Duration {
    let lock = client.lock("group", "name").owned_by(&Owner::new());
    let outer = runtime.block_on(lock.write()).unwrap();
    let each = timed(runtime, ROUNDS, async {
        for _ in 0..ROUNDS {
            drop(black_box(lock.write().await.unwrap()));
        }
    });
    assert!(runtime.block_on(outer.unlock()).unwrap().is_released());
    each
}

fn spread(runtime: &Runtime, client: &Ylock) -> Duration {
    let tasks = 100;
    let each = ROUNDS / tasks;
    timed(runtime, ROUNDS, async {
        let work = (0..tasks).map(|task| tokio::spawn(rounds(client.lock("group", task.to_string()), each)));
        for work in work.collect::<Vec<_>>() {
            work.await.unwrap();
        }
    })
}
