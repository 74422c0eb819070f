//! Many locks are given back at once.

use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::join_all;
use ylock_core::Key;
use ylock_core::engine::{Engine, Release, Request};
use ylock_engine_cassandra::algorithm::store::State;

use crate::fake::Fate;
use crate::stage::{Stage, bounded};

/// The most that are on their way at once.
const AT_ONCE: u64 = 64;
const ANSWER: Duration = Duration::from_secs(1);

/// Were they sent together, a cluster would answer none of them in time, nor a renewal between them.
#[tokio::test(start_paused = true)]
async fn releases_are_sent_a_few_at_a_time_and_all_arrive() {
    bounded(async {
        let stage = Stage::new();
        let (engine, request) = stage.contestant();
        let mut held = Vec::new();
        for number in 0..200 {
            let key = Key::new("users", format!("name-{number}")).unwrap();
            let request = Request { key, ..stage.again(&request) };
            engine.acquire(&request).await.unwrap().unwrap();
            held.push(request);
        }
        stage.fake.plan(|_, _| Fate::IsHeardAfter(ANSWER));
        let before = stage.fake.writes.load(Ordering::SeqCst);
        let released = join_all(held.iter().map(|request| engine.release(&request.key, request.id, None)));
        let counted = async {
            let mut counts = Vec::new();
            for _ in 0..4 {
                tokio::time::sleep(ANSWER / 2).await;
                counts.push(stage.fake.writes.load(Ordering::SeqCst) - before);
                tokio::time::sleep(ANSWER / 2).await;
            }
            counts
        };
        let (released, counts) = tokio::join!(released, counted);
        assert_eq!(counts, [AT_ONCE, AT_ONCE * 2, AT_ONCE * 3, 200]);
        assert!(released.into_iter().all(|release| release.unwrap() == Release::Released));
        for request in held {
            let seen = stage.fake.seen(&request.key);
            assert!(
                seen.rows.iter().all(|seen| seen.row.as_ref().is_none_or(|row| row.state == State::Idle))
            );
        }
    })
    .await;
}
