//! The gap between two holders of different clients, and what it costs; also while other clients write to the same cluster.

use std::time::{Duration, Instant};

use ylock_testkit::measure::{Times, contend, group, ms, ratio};

const HOLD: Duration = Duration::from_millis(1);
const WARM_UP: Duration = Duration::from_secs(3);
const TIME: Duration = Duration::from_secs(8);
/// How many others write, each after a pause of this length.
const WRITERS: usize = 4;
const PAUSE: Duration = Duration::from_millis(2);

pub(crate) async fn run() {
    let floor = floor().await;
    println!("floor: delete sent until the watch tells, p50 {}", ms(floor));
    for contenders in [2, 8, 32] {
        gaps(contenders, floor).await;
    }
    println!("with {WRITERS} writers beside:");
    let writers: Vec<_> = (0..WRITERS).map(|_| tokio::spawn(write())).collect();
    gaps(2, floor).await;
    for writer in writers {
        writer.abort();
    }
}

async fn gaps(contenders: u32, floor: Duration) {
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
        result.requests_each(),
        result.gaps.len(),
        result.unevenness,
    );
}

async fn write() {
    let (raw, key) = (super::raw(), format!("{}/beside", group()));
    loop {
        super::put(&*raw, &key, 0).await;
        tokio::time::sleep(PAUSE).await;
    }
}

/// The least gap that the engine could reach: one client deletes, the other is told.
async fn floor() -> Duration {
    let (one, two, key) = (super::raw(), super::raw(), format!("{}/floor", group()));
    let mut times = Times::default();
    for round in 0..1_000 {
        super::put(&*one, &key, 0).await;
        let watching = two.watch(key.clone().into_bytes(), false).await.expect("watched");
        tokio::time::sleep(HOLD).await;
        let start = Instant::now();
        tokio::join!(super::delete(&*one, &key), async {
            assert!(watching.told.await.expect("told").is_deletion, "deleted");
            times.push(start.elapsed());
        });
        if round == 200 {
            times = Times::default();
        }
    }
    times.quantile(0.5)
}
