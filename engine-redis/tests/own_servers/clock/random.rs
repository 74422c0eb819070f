//! A clock that is never right, and what is counted under the lock meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ylock_core::engine::{Engine, valid_until};
use ylock_core::{Mode, Ylock};
use ylock_engine_redis::{RedisEngine, RedisOptions};

use super::super::{client, within};
use super::counter::{Counter, Report};
use super::{HOUR, SetServer, request};
use ylock_testkit::model::Chance;

const LEASE: Duration = Duration::from_secs(2);
/// A tenth of the lease in microseconds, which holders do not use, less what rounding to milliseconds takes of it.
const MARGIN: u64 = 195_000;
const CLIENTS: u64 = 4;
const STEPS: usize = 150;

#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn steps_within_the_margin_let_nobody_in_beside_anybody() {
    let report = play(MARGIN).await;
    let Report { overlaps, out_of_order, refused, lost, .. } = report;
    assert_eq!((overlaps, out_of_order, refused, lost), (0, 0, 0, 0), "{report:?}");
}

/// This shows that the test above would notice overlapping turns; and this is what tokens are for.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn larger_steps_let_others_in_and_tokens_keep_the_count_right() {
    let report = play(MARGIN * 20).await;
    assert!(report.overlaps > 0 && report.refused > 0 && report.lost == 0, "{report:?}");
}

/// Sets the clock to anywhere within so many microseconds, again and again, and now and then back by an hour.
async fn play(range: u64) -> Report {
    let mut set = SetServer::start().await;
    let (counter, stop) = (Arc::new(Counter::default()), Arc::new(AtomicBool::new(false)));
    let mut tasks = Vec::new();
    for seed in 0..CLIENTS {
        let ylock = client(&set.server, LEASE).await;
        tasks.push(tokio::spawn(work(ylock, Chance::new(seed), Arc::clone(&counter), Arc::clone(&stop))));
    }
    let options = set.server.options().with_lease(LEASE);
    tasks.push(tokio::spawn(die(options, Arc::clone(&counter), Arc::clone(&stop))));
    let (mut chance, mut ahead) = (Chance::new(CLIENTS), 0);
    for _ in 0..STEPS {
        tokio::time::sleep(Duration::from_millis(20 + chance.below(160))).await;
        let next = chance.below(range) as i64;
        set.step(next - ahead).await;
        ahead = next;
        if chance.below(60) == 0 {
            set.backwards(HOUR).await;
        }
    }
    stop.store(true, Ordering::Relaxed);
    for task in tasks {
        within("it ends", task).await.unwrap();
    }
    let report = counter.report();
    println!("{report:?}");
    report
}

/// Takes short turns, and now and then one that lives on its renewals.
async fn work(ylock: Ylock, mut chance: Chance, counter: Arc<Counter>, stop: Arc<AtomicBool>) {
    while !stop.load(Ordering::Relaxed) {
        let longest = if chance.below(200) == 0 { LEASE * 3 / 2 } else { Duration::ZERO };
        let guard = within("it gets in", ylock.locks("users").write("alice")).await.unwrap();
        counter.take_turn(guard.token().expect("a token"), longest, || guard.is_valid()).await;
        // The lock may have been lost.
        drop(guard.unlock().await);
    }
}

/// Clients that use their lease to the end of its validity, and then are gone without a word.
async fn die(options: RedisOptions, counter: Arc<Counter>, stop: Arc<AtomicBool>) {
    while !stop.load(Ordering::Relaxed) {
        let engine = RedisEngine::connect(&options).await.unwrap();
        let request = request(&engine, Mode::Write, LEASE);
        let grant = within("it gets in", engine.acquire(&request)).await.unwrap().expect("granted");
        let (token, until) = (grant.token.expect("a token").into(), valid_until(grant.sent, LEASE));
        counter.take_turn(token, LEASE, || engine.environment().now() < until).await;
        // The other clients shall have their turns too, and not only wait for the end of this lease.
        tokio::time::sleep(LEASE).await;
    }
}
