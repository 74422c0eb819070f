//! Acquire and release without contention.

use std::time::Instant;

use ylock_engine_etcd::algorithm::store::Store;
use ylock_testkit::measure::{Times, group, ms, pairs, ratio};

const WARM_UP: usize = 1_000;
const PAIRS: usize = 4_000;
/// Pairs in one turn: raw and engine take turns, so that both see the same machine.
const TURN: usize = 100;

pub(crate) async fn run() {
    let (raw, client) = (super::raw(), super::client().await);
    let locks = client.ylock.locks(group());
    let key = format!("{}/by-hand", group());
    let lease = raw.grant(600).await.expect("a lease").lease;
    let (mut by_hand, mut ours) = (Times::default(), Times::default());
    for round in 0..(WARM_UP + PAIRS) / TURN {
        let (one, other) = (turn_by_hand(&*raw, &key, lease).await, pairs(&locks, "ours", TURN).await);
        if round >= WARM_UP / TURN {
            by_hand.extend(one);
            ours.extend(other);
        }
    }
    raw.revoke(lease).await.expect("revoked");
    for (name, times) in [("put, delete", &mut by_hand), ("acquire, release", &mut ours)] {
        println!("{name:24} p50 {}  p99 {}", ms(times.quantile(0.5)), ms(times.quantile(0.99)));
    }
    let cost = ratio(ours.quantile(0.5), by_hand.quantile(0.5));
    println!("a pair, in pairs by hand {cost:.3}  (target 1.2)");
    client.ylock.close().await;
}

async fn turn_by_hand(raw: &dyn Store, key: &str, lease: i64) -> Times {
    let mut times = Times::default();
    for _ in 0..TURN {
        let start = Instant::now();
        super::put(raw, key, lease).await;
        super::delete(raw, key).await;
        times.push(start.elapsed());
    }
    times
}
