//! Fifty thousand locks held by one process.

use std::time::Duration;

use ylock_testkit::measure::hold;

const LOCKS: usize = 50_000;
const TIME: Duration = Duration::from_secs(300);

pub(crate) async fn run() {
    hold(super::client().await, LOCKS, TIME, async || {
        let seen = super::ask("srvr");
        let nodes = seen.lines().find(|line| line.starts_with("Node count")).unwrap_or_default();
        println!("the server: {nodes}");
    })
    .await;
}
