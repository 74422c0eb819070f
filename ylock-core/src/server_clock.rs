//! The server's clock, as this client guesses it.
//!
//! For engines whose server's time decides. Not covered by semver.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use crate::environment::{Environment, Moment};
use crate::error::Result;

/// A store whose server tells its time.
pub trait TellsTime: fmt::Debug + Send + Sync + 'static {
    /// Returns the server's clock, in microseconds since 1970.
    fn server_time(&self) -> impl Future<Output = Result<i64>> + Send;
}

/// The age at which the guess of the server's clock is made anew.
const CLOCK_AGE: Duration = Duration::from_secs(10);

/// The number of times that the server is asked for its time in a row: this many, or up to [`MOST_TRIPS`] until a trip was short.
const TRIPS: u32 = 3;
const MOST_TRIPS: u32 = 8;
const SHORT_TRIP: Duration = Duration::from_micros(500);

/// The server's clock, as guessed when the server was last asked: for places in the queue that must be known at once.
#[derive(Debug)]
pub struct ServerClock<S> {
    store: Arc<S>,
    environment: Arc<dyn Environment>,
    /// The server's time less the client's, in microseconds.
    ahead: AtomicI64,
    asked: AtomicU64,
}

impl<S: TellsTime> ServerClock<S> {
    /// Returns the clock of the server of this store, which was not asked yet.
    pub fn new(store: &Arc<S>, environment: &Arc<dyn Environment>) -> Arc<Self> {
        Arc::new(Self {
            store: Arc::clone(store),
            environment: Arc::clone(environment),
            ahead: AtomicI64::default(),
            asked: AtomicU64::default(),
        })
    }

    /// Returns what the server's clock shows now, in microseconds.
    pub fn shows(&self) -> i64 {
        micros(self.environment.now()).saturating_add(self.ahead.load(Ordering::Relaxed))
    }

    /// Compares the server's clock with the client's. A long trip makes the guess worse, so the shortest of a few trips counts; of more, as
    /// long as all are long. If a request gets no answer, an older guess stays; where there is none, one answer is enough.
    ///
    /// # Errors
    /// Those of the request for the time.
    pub async fn ask(&self) -> Result<()> {
        let is_first = self.asked.load(Ordering::Relaxed) == 0;
        let mut best: Option<(Duration, i64)> = None;
        for number in 0..MOST_TRIPS {
            let before = self.environment.now();
            let server = match self.store.server_time().await {
                Ok(server) => server,
                Err(_) if is_first && best.is_some() => break,
                Err(error) => return Err(error),
            };
            let trip = self.environment.now().since(before);
            let ahead = server - micros(before.plus(trip / 2));
            if best.is_none_or(|(shortest, _)| trip < shortest) {
                best = Some((trip, ahead));
            }
            if number + 1 >= TRIPS && best.is_some_and(|(shortest, _)| shortest < SHORT_TRIP) {
                break;
            }
        }
        if let Some((_, ahead)) = best {
            self.ahead.store(ahead, Ordering::Relaxed);
        }
        self.asked.store(self.environment.now().as_nanos(), Ordering::Relaxed);
        Ok(())
    }

    /// Keeps the guess fresh, in a task that no caller waits for.
    pub fn keep_fresh(self: &Arc<Self>) {
        let asked = Moment::from_nanos(self.asked.load(Ordering::Relaxed));
        if self.environment.now().since(asked) < CLOCK_AGE {
            return;
        }
        self.asked.store(self.environment.now().as_nanos(), Ordering::Relaxed);
        let clock = Arc::clone(self);
        self.environment.spawn_for_all(Box::pin(async move { drop(clock.ask().await) }));
    }
}

fn micros(moment: Moment) -> i64 {
    i64::try_from(moment.as_nanos() / 1_000).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;
    use crate::environment::SystemEnvironment;
    use crate::error::{Error, ErrorKind};

    /// What the server's clock shows, in microseconds.
    const SHOWN: i64 = 1_000_000_000_000_000;

    /// Answers so many requests, and no more.
    #[derive(Debug)]
    struct Answers(AtomicU32);

    impl TellsTime for Answers {
        async fn server_time(&self) -> Result<i64> {
            let left = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
            left.map(|_| SHOWN).map_err(|_| Error::new(ErrorKind::Unavailable, "no answer"))
        }
    }

    fn clock(answers: u32) -> Arc<ServerClock<Answers>> {
        ServerClock::new(&Arc::new(Answers(answers.into())), &SystemEnvironment::shared())
    }

    #[tokio::test]
    async fn one_answer_is_enough_for_a_first_guess() {
        for answers in [1, 2] {
            let clock = clock(answers);
            clock.ask().await.unwrap();
            assert!(clock.shows() >= SHOWN);
        }
        assert_eq!(clock(0).ask().await.unwrap_err().kind(), ErrorKind::Unavailable);
    }

    /// The trip that was answered may have been the longest: of a process that was paused, say.
    #[tokio::test]
    async fn a_guess_stays_when_a_later_question_has_no_answer() {
        let clock = clock(1);
        clock.ask().await.unwrap();
        let guessed = clock.ahead.load(Ordering::Relaxed);
        clock.store.0.store(1, Ordering::Relaxed);
        assert_eq!(clock.ask().await.unwrap_err().kind(), ErrorKind::Unavailable);
        assert_eq!(clock.ahead.load(Ordering::Relaxed), guessed);
    }
}
