//! The gap between two holders of different clients, and what it costs.

use std::time::{Duration, Instant};

use ylock_core::Key;
use ylock_core::environment::SystemEnvironment;
use ylock_engine_cassandra::algorithm::store::{Slot, State, Store};
use ylock_engine_cassandra::driver::Table;
use ylock_engine_cassandra::options::Notify;

use super::client_by;
use ylock_testkit::measure::{Times, contend, group, ms, ratio};

const LEASE: Duration = Duration::from_secs(30);
const HOLD: Duration = Duration::from_millis(5);
const WARM_UP: Duration = Duration::from_secs(4);
const TIME: Duration = Duration::from_secs(10);

pub(crate) async fn run(notify: Notify) {
    println!("waiters that are told: notify={notify}");
    let read = raw_read(2, Duration::ZERO).await;
    println!("raw quorum read of  2 rows p50 {:>10}", ms(read));
    println!("the same, 5 ms apart       p50 {:>10}", ms(raw_read(2, HOLD).await));
    println!("raw quorum read of 64 rows p50 {:>10}", ms(raw_read(64, Duration::ZERO).await));
    let mut at_two = Duration::ZERO;
    for contenders in [1, 2, 8, 32, 64] {
        let mut clients = Vec::new();
        for _ in 0..contenders {
            clients.push(client_by(LEASE, notify).await);
        }
        let mut result = contend(clients, HOLD, WARM_UP, TIME).await;
        let (p50, p99) = (result.gaps.quantile(0.5), result.gaps.quantile(0.99));
        if contenders == 2 {
            at_two = p50;
        }
        let beside_two = if contenders < 2 { 1.0 } else { ratio(p50, at_two) };
        println!(
            "{contenders:2} clients: gap p50 {:>10}  p99 {:>10}  {:5.2} x read  {beside_two:5.2} x at two  {:5.1} requests  {:6} hand-overs  most/fewest {:.2}",
            ms(p50),
            ms(p99),
            ratio(p50, read),
            result.requests_each(),
            result.gaps.len(),
            result.unevenness,
        );
    }
}

/// Returns the median of reading a partition as so many clients leave it behind, one time after the other with a pause between.
async fn raw_read(rows: u128, pause: Duration) -> Duration {
    let environment = SystemEnvironment::shared();
    let table = Table::connect(&super::options(LEASE), &environment).await.expect("the cluster answers");
    let key = Key::new(group(), "raw").expect("a key");
    for slot in 0..rows {
        let row = super::uncontended::write(State::Idle, true);
        table.write(&key, Slot::from_u128(1 << 100 | slot), &row).await.expect("written");
    }
    let mut times = Times::default();
    let rounds = if pause.is_zero() { 4_000 } else { 1_000 };
    for round in 0..rounds {
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        let start = Instant::now();
        table.read(&key).await.expect("read");
        if round >= rounds / 2 {
            times.push(start.elapsed());
        }
    }
    times.quantile(0.5)
}
