//! What callers are told while the store is away, and what the log says of a store that goes away and comes back, and of a client that goes
//! away.

#![allow(clippy::disallowed_methods, reason = "a test stands outside")]

use std::sync::Arc;
use std::time::Duration;

use tracing::Level;
use ylock_core::engine::Meter;
use ylock_core::environment::{Environment, SystemEnvironment};
use ylock_core::{Error, ErrorKind, MemoryEngine, Result, Ylock};
use ylock_testkit::{Call, Faulty, Log, Outage, an_outage_is_told_as_one};

use crate::support::Notes;

/// One client's requests to one store.
struct Requests(Meter, Arc<dyn Environment>);

impl Requests {
    async fn send(&self, answer: Result<()>) {
        let took = Duration::from_millis(10);
        let request = async {
            tokio::time::sleep(took).await;
            answer
        };
        drop(self.0.measure(&*self.1, "test", request).await);
    }
}

fn no_answer() -> Result<()> {
    Err(Error::new(ErrorKind::Unavailable, "no answer"))
}

#[tokio::test(start_paused = true)]
async fn an_outage_is_one_warning_and_one_line_when_it_is_over() {
    let (log, _here) = Log::of(Level::INFO);
    let meter = Meter::of("redis", "cache:6379");
    let requests = Requests(meter, SystemEnvironment::on_tokio_clock());
    for _ in 0..2 {
        requests.send(Ok(())).await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        for _ in 0..100 {
            requests.send(no_answer()).await;
        }
    }
    assert_eq!(log.lines(&["WARN", "the store does not answer", "redis", "cache:6379"]).len(), 2);
    // An answer that says no is an answer.
    requests.send(Err(Error::new(ErrorKind::Config, "no"))).await;
    assert_eq!(log.lines(&["INFO", "the store answers again", "redis", "cache:6379"]).len(), 2);
    assert_eq!(log.lines(&["the store"]).len(), 4);
}

/// One of several servers is down: the locks that it keeps wait, and the others go on.
#[tokio::test(start_paused = true)]
async fn requests_that_fail_while_others_are_answered_are_no_outage() {
    let (log, _here) = Log::of(Level::INFO);
    let requests = Requests(Meter::of("redis", "cache:6379"), SystemEnvironment::on_tokio_clock());
    for _ in 0..100 {
        requests.send(Ok(())).await;
        requests.send(no_answer()).await;
    }
    assert_eq!(log.lines(&["the store"]).len(), 0);
}

/// The store refuses each request at once, as one does to which no client can connect.
#[tokio::test(start_paused = true)]
async fn every_bounded_call_tells_a_store_that_is_away_from_a_lock_that_is_held() {
    let outage = Arc::new(Outage::of(Call::ALL));
    let ylock = Ylock::from_arc(Faulty::over(Arc::new(MemoryEngine::new()), &outage));
    an_outage_is_told_as_one(&ylock, "users", Duration::from_secs(1)).await;
}

/// As the last act of a program it would come to nothing.
#[tokio::test]
async fn a_client_that_is_dropped_while_a_lock_is_given_back_is_warned_of() {
    let (log, _here) = Log::of(Level::WARN);
    for is_closed in [true, false] {
        let ylock = Ylock::from_arc(Notes::over(MemoryEngine::new(), |_| Ok(())));
        let guard = ylock.lock("users", "alice").write().await.unwrap();
        drop(guard);
        if is_closed {
            ylock.close().await;
        }
        drop(ylock);
        let warned = log.lines(&["a client was dropped", "store:7", "count=1"]).len();
        assert_eq!(warned, usize::from(!is_closed));
    }
}
