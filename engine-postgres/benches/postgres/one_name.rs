//! A hundred thousand acquisitions of one name: whether the last ones take longer than the first, and what is left in the table; and once more while an old
//! snapshot keeps all versions of the row.

use std::time::{Duration, Instant};

use ylock_testkit::measure::{Times, group, ms, ratio};

use super::{client, connect};

const LEASE: Duration = Duration::from_secs(30);
const CYCLES: usize = 100_000;
const WITH_SNAPSHOT: usize = 10_000;
const PART: usize = 2_000;

pub(crate) async fn run() {
    let (first, last) = cycles(CYCLES).await;
    println!(
        "{CYCLES} cycles: the first {PART} p50 {}, the last {}, {:.2} of the first; {} of table and index",
        ms(first),
        ms(last),
        ratio(last, first),
        size().await
    );
    let old = connect().await;
    old.batch_execute("begin isolation level repeatable read; select count(*) from ylock.lock")
        .await
        .expect("a snapshot");
    let (_, last) = cycles(WITH_SNAPSHOT).await;
    println!(
        "{WITH_SNAPSHOT} cycles with an old snapshot: the last p50 {}, {:.2} of the first without; {} of table and index",
        ms(last),
        ratio(last, first),
        size().await
    );
    old.batch_execute("commit").await.expect("ended");
}

/// Returns the medians of the first and the last ones.
async fn cycles(count: usize) -> (Duration, Duration) {
    let client = client(LEASE).await;
    let locks = client.ylock.locks(group());
    let (mut first, mut last) = (Times::default(), Times::default());
    for cycle in 0..count {
        let start = Instant::now();
        let guard = locks.write("one").await.expect("granted");
        assert!(guard.unlock().await.expect("released").is_released());
        if cycle < PART {
            first.push(start.elapsed());
        } else if cycle >= count - PART {
            last.push(start.elapsed());
        }
    }
    client.ylock.close().await;
    (first.quantile(0.5), last.quantile(0.5))
}

async fn size() -> String {
    let size = "select pg_size_pretty(pg_total_relation_size('ylock.lock'))";
    connect().await.query_one(size, &[]).await.expect("a size").get(0)
}
