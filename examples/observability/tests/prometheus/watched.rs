//! Watches the workload: every expression has an answer, and an alert tells of a lost lock.

use std::{
    env,
    net::SocketAddr,
    process::{Command, Stdio},
    time::{Duration, SystemTime},
};

use ylock_metrics::catalogue::{self, Kind};
use ylock_observability::{prometheus, query, rules};

use crate::{
    answers::{check_series, fires, questions, unanswered},
    server::{Process, Server, free_address, promtool},
};

/// Returns the URLs of the stores that `cargo xtask test` has started, and that of the store in memory.
fn urls() -> Vec<String> {
    let started = env::var("YLOCK_TEST_URLS").unwrap_or_default();
    ["memory://"].into_iter().chain(started.split_whitespace()).map(str::to_owned).collect()
}

/// Starts the workload, which loses a lock on every store from time to time, or none at all. The first loss comes so soon that a busy Prometheus may hear
/// of it only as a number that is one from the beginning.
fn workload(listen: SocketAddr, urls: &[String], is_to_lose: bool) -> Process {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ylock-observability"));
    command.args(["run", "--listen", &listen.to_string()]);
    if !is_to_lose {
        command.args(["--losses", "0"]);
    }
    command.args(urls);
    Process::start(command.stderr(Stdio::null()))
}

#[test]
#[ignore = "needs Prometheus"]
fn everything_that_is_asked_has_an_answer_and_a_lost_lock_is_told() {
    let (metrics, urls) = (free_address(), urls());
    println!("on {}", urls.join(", "));
    let mut server = Server::start(metrics, "20s");
    // Prometheus begins to scrape seconds after it is ready, and panels cannot show what happens before.
    server.until("it looks for the workload", |prometheus| {
        prometheus.now("up").unwrap().is_empty().then(|| "no up".to_owned())
    });
    let began = SystemTime::now();
    let mut losing = workload(metrics, &urls, true);

    let engines: Vec<_> =
        urls.iter().filter_map(|url| url.split_once(':')).map(|(scheme, _)| scheme).collect();
    let mut silent = engines.clone();
    server.until("the lost lock on every engine is told", |prometheus| {
        losing.assert_alive();
        silent.retain(|engine| !fires(prometheus, rules::LOCK_LOST, engine));
        (!silent.is_empty()).then(|| format!("not on {silent:?}"))
    });
    // For all engines together, and for each engine: an engine that works may hide one that does not.
    for chosen in [query::ALL].iter().chain(&engines) {
        // The in-memory engine sends no request to a store. `cargo xtask test` starts the stores of other engines.
        let asks_store = *chosen != "memory" && engines.len() > 1;
        let mut open = questions(chosen);
        println!("{} questions, engine {chosen}", open.len());
        // First of the whole run, which may be long on a slow machine, then of what came since.
        let mut since = began;
        server.until("everything has an answer", |prometheus| {
            let now = SystemTime::now();
            open = unanswered(prometheus, since, std::mem::take(&mut open));
            since = now - LATE;
            open.retain(|question| asks_store || !question.expression.contains(STORE));
            (!open.is_empty()).then(|| format!("{open:#?}"))
        });
    }
    for alert in rules::alerts() {
        server.prometheus.now(&alert.expression).unwrap_or_else(|why| panic!("{}: {why}", alert.name));
    }
    check_series(server.prometheus);
    check_scraped(&prometheus::get(metrics, "/metrics").unwrap(), engines.len() > 1);
    losing.assert_alive();
    drop(losing);
    let mut workload = workload(metrics, &urls, false);
    server.until("the alert is over", |prometheus| {
        let fires = engines.iter().any(|engine| fires(prometheus, rules::LOCK_LOST, engine));
        fires.then(|| "it still fires".to_owned())
    });
    workload.assert_alive();
}

/// Longer than it takes until Prometheus shows what it has scraped.
const LATE: Duration = Duration::from_secs(10);
/// The beginning of the names of metrics about requests to a store.
const STORE: &str = "ylock_store_request";

fn check_scraped(text: &str, has_store: bool) {
    promtool(&["check", "metrics"], text);
    for metric in catalogue::ALL.iter().filter(|metric| has_store || !metric.name.starts_with(STORE)) {
        let kind = match metric.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram(_) => "histogram",
        };
        let told = text.contains(&format!("# TYPE {} {kind}\n", metric.name));
        assert!(told, "{} is not reported as a {kind}", metric.name);
    }
}
