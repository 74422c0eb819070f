//! Measures what names that are used once leave behind.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream};
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use ylock_core::environment::SystemEnvironment;
use ylock_core::{Options, Ylock};
use ylock_engine_cassandra::CassandraEngine;
use ylock_engine_cassandra::driver::Table;
use ylock_testkit::measure::group;

const LEASE: Duration = Duration::from_secs(5);
const TOKEN_TTL: Duration = Duration::from_secs(20);
const MAX_CLOCK_SKEW: Duration = Duration::from_secs(2);
const GC_GRACE: Duration = Duration::from_secs(20);
const NAMES: usize = 100_000;
const PATIENCE: Duration = Duration::from_secs(300);

pub(crate) async fn run() {
    // What is kept of a token outlives the skew of clocks, and so must not be that of a minute.
    let options = super::options(LEASE)
        .with_table("names")
        .with_token_ttl(TOKEN_TTL)
        .with_max_clock_skew(MAX_CLOCK_SKEW)
        .with_gc_grace(GC_GRACE);
    let environment = SystemEnvironment::shared();
    let table = Arc::new(Table::connect(&options, &environment).await.expect("the cluster answers"));
    let engine = CassandraEngine::over(table.clone(), environment, table.options());
    let ylock = Ylock::new(engine).with_options(Options::default().with_lease(LEASE));
    let (group, start) = (group(), Instant::now());
    let locks = ylock.locks(group.clone());
    let used = stream::iter(0..NAMES).map(|name| {
        let locks = locks.clone();
        async move { drop(locks.write(format!("name-{name}")).await.expect("granted")) }
    });
    used.buffer_unordered(128).collect::<Vec<()>>().await;
    ylock.close().await;
    println!("{NAMES} names used once in {:.0} s", start.elapsed().as_secs_f64());
    let session = SessionBuilder::new().known_nodes(super::hosts()).build().await;
    let session = session.expect("the cluster answers");
    let start = Instant::now();
    loop {
        let (live, disk) = (live(&session).await, disk(&session).await);
        println!(
            "{:4.0} s later: {live:6} live partitions, {disk:.1} MiB on disk",
            start.elapsed().as_secs_f64()
        );
        if (live == 0 && disk < 1.0) || start.elapsed() > PATIENCE {
            return;
        }
        tokio::time::sleep(Duration::from_secs(20)).await;
    }
}

/// Returns how many partitions the table has.
async fn live(session: &Session) -> usize {
    let cql = "SELECT DISTINCT lock_group, lock_name FROM ylock_engine_bench.names";
    let pager = session.query_iter(cql, ()).await.expect("answers");
    let rows = pager.rows_stream::<(String, String)>().expect("two texts");
    rows.map(|row| row.expect("a row")).collect::<HashSet<_>>().await.len()
}

/// Returns how much the largest of the nodes keeps of the table in files.
async fn disk(session: &Session) -> f64 {
    let cql = "SELECT mebibytes FROM system_views.disk_usage WHERE keyspace_name = 'ylock_engine_bench' AND table_name = 'names'";
    let answer = session.query_unpaged(cql, ()).await.expect("answers").into_rows_result().expect("rows");
    answer.rows::<(i64,)>().expect("numbers").map(|row| row.expect("a row").0 as f64).sum()
}
