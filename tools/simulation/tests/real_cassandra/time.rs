//! The seconds of the real node, by which cells end.

use std::sync::Arc;
use std::time::Duration;

use scylla::client::session::Session;
use scylla::value::CqlTimestamp;
use ylock_core::environment::{Environment, SystemEnvironment};

const SECOND: i64 = 1_000_000;
/// The part of a second in which requests are sent, in microseconds. Around it there is more than the clock is wrong by.
const SENDING: std::ops::Range<i64> = 100_000..800_000;
/// The time in the second after which an answer may be one of the next second.
const LAST_ANSWER: i64 = 950_000;
const ASKED: usize = 9;
const MOST_ASKED: usize = 50 * ASKED;

/// The clock of the real node, as well as the test knows it.
pub(crate) struct NodeClock {
    environment: Arc<dyn Environment>,
    /// The node's clock less that of this machine, in microseconds.
    offset: i64,
}

impl NodeClock {
    /// Asks some times, and believes the quickest answer; more often where none was quick enough to
    /// know the clock by. The nodes' clocks are taken for the same.
    pub(crate) async fn of(session: &Session) -> Self {
        let environment = SystemEnvironment::shared();
        let mut quickest = (i64::MAX, 0);
        for asked_before in 0..MOST_ASKED {
            if asked_before >= ASKED && quickest.0 < SENDING.start {
                break;
            }
            let before = environment.wall_micros();
            let shown = asked(session).await;
            let after = environment.wall_micros();
            // It shows milliseconds, rounded down.
            quickest = quickest.min((after - before, shown + 500 - i64::midpoint(before, after)));
        }
        let (took, offset) = quickest;
        assert!(
            took < SENDING.start,
            "the node's clock is not known: the quickest of {MOST_ASKED} answers took {took} µs"
        );
        Self { environment, offset }
    }

    fn micros(&self) -> i64 {
        self.environment.wall_micros() + self.offset
    }

    /// Waits for the time in a second in which requests are sent; returns that second.
    pub(crate) async fn sending(&self) -> i64 {
        loop {
            let now = self.micros();
            let within = now.rem_euclid(SECOND);
            if SENDING.contains(&within) {
                return now.div_euclid(SECOND);
            }
            let left = (SENDING.start - within).rem_euclid(SECOND);
            self.environment.sleep(Duration::from_micros(left.unsigned_abs() + 1_000)).await;
        }
    }

    /// Waits until this second, and for the time in it in which requests are sent.
    pub(crate) async fn sending_from(&self, second: i64) -> i64 {
        let left = second * SECOND - self.micros();
        self.environment.sleep(Duration::from_micros(u64::try_from(left).unwrap_or(0))).await;
        self.sending().await
    }

    /// Returns whether what was answered by now was done in this second.
    pub(crate) fn is_still(&self, second: i64) -> bool {
        self.micros() < second * SECOND + LAST_ANSWER
    }
}

async fn asked(session: &Session) -> i64 {
    let answer = session.query_unpaged("SELECT toTimestamp(now()) FROM system.local", ()).await.unwrap();
    let (CqlTimestamp(millis),) = answer.into_rows_result().unwrap().single_row().unwrap();
    millis * 1_000
}
