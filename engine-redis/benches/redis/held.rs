//! A hundred thousand locks held by one process.

use std::time::Duration;

use ylock_testkit::measure::hold;

const LOCKS: usize = 100_000;
const LEASE: Duration = Duration::from_secs(30);
const TIME: Duration = Duration::from_secs(300);

pub(crate) async fn run() {
    let before = server_memory().await;
    hold(super::client(LEASE).await, LOCKS, TIME, async || {
        let each = server_memory().await.saturating_sub(before) / LOCKS as u64;
        println!("memory of the server for each: {each} bytes");
    })
    .await;
}

async fn server_memory() -> u64 {
    let client = redis::Client::open(super::address()).expect("an address");
    let mut connection = client.get_multiplexed_async_connection().await.expect("the server answers");
    let mut command = redis::cmd("INFO");
    command.arg("memory");
    let said: String = command.query_async(&mut connection).await.expect("an answer");
    let used = said.lines().find_map(|line| line.strip_prefix("used_memory:"));
    used.and_then(|used| used.trim().parse().ok()).unwrap_or(0)
}
