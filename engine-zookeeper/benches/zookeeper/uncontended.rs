//! Acquire and release without contention.

use std::time::Instant;

use ylock_testkit::measure::{Times, group, ms, pairs, ratio};
use zookeeper_client::{Acls, Client, CreateMode};

const WARM_UP: usize = 2_000;
const PAIRS: usize = 4_000;
/// Pairs in one turn: raw and engine take turns, so that both see the same machine.
const TURN: usize = 100;

pub(crate) async fn run() {
    let (raw, client) = (super::raw().await, super::client().await);
    let locks = client.ylock.locks(group());
    let parent = format!("/{}", group());
    raw.create(&parent, b"", &CreateMode::Persistent.with_acls(Acls::anyone_all())).await.expect("made");
    let (mut by_hand, mut ours) = (Times::default(), Times::default());
    for round in 0..(WARM_UP + PAIRS) / TURN {
        let (one, other) = (turn_by_hand(&raw, &parent).await, pairs(&locks, "ours", TURN).await);
        if round >= WARM_UP / TURN {
            by_hand.extend(one);
            ours.extend(other);
        }
    }
    raw.delete(&parent, None).await.expect("removed");
    for (name, times) in [("create and list, delete", &mut by_hand), ("acquire, release", &mut ours)] {
        println!("{name:24} p50 {}  p99 {}", ms(times.quantile(0.5)), ms(times.quantile(0.99)));
    }
    let speed = ratio(by_hand.quantile(0.5), ours.quantile(0.5));
    println!("speed, as a part of raw  {speed:.3}  (target 0.95)");
    client.ylock.close().await;
}

async fn turn_by_hand(raw: &Client, parent: &str) -> Times {
    let options = CreateMode::EphemeralSequential.with_acls(Acls::anyone_all());
    let prefix = format!("{parent}/w-0123456789abcdef0123456789abcdef-");
    let mut times = Times::default();
    for _ in 0..TURN {
        let start = Instant::now();
        let (created, listed) = tokio::join!(raw.create(&prefix, b"", &options), raw.list_children(parent));
        let (_, sequence) = created.expect("made");
        assert_eq!(listed.expect("listed").len(), 1);
        raw.delete(&format!("{prefix}{sequence}"), None).await.expect("removed");
        times.push(start.elapsed());
    }
    times
}
