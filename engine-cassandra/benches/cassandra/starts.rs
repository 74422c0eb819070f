//! Measures what many clients leave behind at one name, one after the other.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ylock_core::environment::SystemEnvironment;
use ylock_core::{Options, Ylock};
use ylock_engine_cassandra::CassandraEngine;
use ylock_engine_cassandra::driver::Table;

use ylock_testkit::measure::{Times, group, ms};

const LEASE: Duration = Duration::from_secs(5);
const STARTS: usize = 10_000;
const SHOWN: usize = 1_000;

pub(crate) async fn run() {
    let environment = SystemEnvironment::shared();
    let table = Table::connect(&super::options(LEASE), &environment).await.expect("the cluster answers");
    let table = Arc::new(table);
    let group = group();
    for first in (0..STARTS).step_by(SHOWN) {
        let mut times = Times::default();
        for _ in 0..SHOWN {
            // Connecting anew would only measure the driver; what counts is that each client has a row of its own.
            let engine = CassandraEngine::over(table.clone(), environment.clone(), table.options());
            let ylock = Ylock::new(engine).with_options(Options::default().with_lease(LEASE));
            let start = Instant::now();
            let guard = ylock.locks(group.clone()).write("name").await.expect("granted");
            times.push(start.elapsed());
            assert!(guard.unlock().await.expect("released").is_released());
            ylock.close().await;
        }
        println!(
            "clients {first:5} to {:5}: acquire p50 {:>10}  p99 {:>10}",
            first + SHOWN,
            ms(times.quantile(0.5)),
            ms(times.quantile(0.99))
        );
    }
}
