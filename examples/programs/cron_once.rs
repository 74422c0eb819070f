//! A report that is made once per period, although three replicas all call for it again and again.
//! A run that fails is repeated within its period, by whichever replica calls next.
#![allow(clippy::disallowed_methods, reason = "a program's tasks and pauses are its own")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ylock::{JobOutcome, MemoryStore, Period, Ylock};

/// The work; the very first run of this demo fails.
async fn make_report(by: &str) -> Result<usize, std::io::Error> {
    static HAS_FAILED: AtomicBool = AtomicBool::new(false);
    println!("{by}: makes the report");
    tokio::time::sleep(Duration::from_millis(50)).await;
    if !HAS_FAILED.swap(true, Ordering::Relaxed) {
        return Err(std::io::Error::other("the printer is out of paper"));
    }
    Ok(12)
}

/// Calls for the report at each tick, as a timer of a service would.
async fn replica(ylock: Ylock, period: Period) -> ylock::Result<()> {
    let name = ylock.name().to_string();
    let jobs = ylock.locks("jobs");
    for _ in 0..6 {
        match jobs.once_per("report", period, |_| make_report(&name)).await {
            Ok(JobOutcome::Ran(Ok(pages))) => println!("{name}: made it, {pages} pages"),
            Ok(JobOutcome::Ran(Err(error))) => println!("{name}: failed, the next call tries again: {error}"),
            Ok(JobOutcome::RunningElsewhere(run)) => println!("{name}: {} is at it", run.client),
            Ok(JobOutcome::AlreadyRun(run)) => println!("{name}: {} has made it", run.client),
            Err(error) if error.is_retryable() => eprintln!("{name}: not now: {error:#}"),
            Err(error) => return Err(error),
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    ylock.close().await;
    Ok(())
}

/// Connects one client per replica. Each `connect("memory://…")` would have a store of its own, so those share one here, with no options.
async fn connect_replicas(url: &str) -> ylock::Result<Vec<Ylock>> {
    let store = MemoryStore::new();
    let mut replicas = Vec::new();
    for number in 1..=3 {
        let ylock =
            if url.starts_with("memory:") { Ylock::new(store.engine()) } else { ylock::connect(url).await? };
        replicas.push(ylock.with_name(format!("replica {number}"))?);
    }
    Ok(replicas)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "memory://".to_owned());
    // Two seconds for a demo; a real one would be `24 * hour`, perhaps `with_offset(2 * hour)`.
    let period = Period::of(Duration::from_secs(2)).until_done();

    let replicas = connect_replicas(&url).await?;
    let tasks: Vec<_> = replicas.into_iter().map(|ylock| tokio::spawn(replica(ylock, period))).collect();
    for task in tasks {
        task.await??;
    }
    Ok(())
}
