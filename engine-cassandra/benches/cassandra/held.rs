//! Ten thousand locks held by one process.

use std::time::Duration;

use ylock_testkit::measure::hold;

const LOCKS: usize = 10_000;
const LEASE: Duration = Duration::from_secs(30);
const TIME: Duration = Duration::from_secs(60);

pub(crate) async fn run() {
    hold(super::client(LEASE).await, LOCKS, TIME, async || ()).await;
}
