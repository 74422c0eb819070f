//! A hundred thousand locks held by one process.

use std::time::Duration;

use ylock_testkit::measure::hold;

const LOCKS: usize = 100_000;
/// That of the benchmark of Redis, which holds as many.
const LEASE: Duration = Duration::from_secs(30);
const TIME: Duration = Duration::from_secs(300);

pub(crate) async fn run() {
    hold(super::client_with(LEASE).await, LOCKS, TIME, async || {}).await;
}
