//! The gap between two holders of different clients, and what it costs.

use std::time::{Duration, Instant};

use ylock_testkit::measure::{Times, contend, group, ms, ratio};
use zookeeper_client::{Acls, CreateMode};

const HOLD: Duration = Duration::from_millis(1);
const WARM_UP: Duration = Duration::from_secs(4);
const TIME: Duration = Duration::from_secs(8);

pub(crate) async fn run() {
    let floor = floor().await;
    println!("floor: delete sent until the watch fires, p50 {}", ms(floor));
    for contenders in [2, 8, 32, 1_000] {
        let mut clients = Vec::new();
        for _ in 0..contenders {
            clients.push(super::client().await);
        }
        let mut result = contend(clients, HOLD, WARM_UP, TIME).await;
        let (p50, p99) = (result.gaps.quantile(0.5), result.gaps.quantile(0.99));
        println!(
            "{contenders:4} clients: gap p50 {:>9}  p99 {:>9}  {:5.2} x floor  {:5.2} requests  {:6} hand-overs  most/fewest {:.2}",
            ms(p50),
            ms(p99),
            ratio(p50, floor),
            // Each client counts the requests that the server received from all clients.
            result.requests_each() / f64::from(contenders),
            result.gaps.len(),
            result.unevenness,
        );
    }
}

/// The least gap that the engine could reach: one session deletes, the other is told.
async fn floor() -> Duration {
    let (one, two) = (super::raw().await, super::raw().await);
    let (path, options) = (format!("/{}", group()), CreateMode::Persistent.with_acls(Acls::anyone_all()));
    let mut times = Times::default();
    for round in 0..2_000 {
        one.create(&path, b"", &options).await.expect("made");
        let (_, watcher) = two.check_and_watch_stat(&path).await.expect("watched");
        tokio::time::sleep(HOLD).await;
        let start = Instant::now();
        let deleted = one.delete(&path, None);
        let (deleted, _event) = tokio::join!(deleted, async {
            let event = watcher.changed().await;
            times.push(start.elapsed());
            event
        });
        deleted.expect("removed");
        if round == 500 {
            times = Times::default();
        }
    }
    times.quantile(0.5)
}
