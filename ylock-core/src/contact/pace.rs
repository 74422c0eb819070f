//! How fast a store answers a client, whatever it is asked for.

use std::time::Duration;

use parking_lot::Mutex;

use crate::environment::Moment;

/// The time for which an answer tells how fast the store is.
const LATELY: Duration = Duration::from_secs(1);

/// The slowest answer that the store has given a client lately, for whatever key.
#[derive(Debug, Default)]
pub(crate) struct Pace(Mutex<Option<Answered>>);

#[derive(Clone, Copy, Debug)]
struct Answered {
    at: Moment,
    took: Duration,
}

impl Pace {
    pub(super) fn answered(&self, at: Moment, took: Duration) {
        let mut slowest = self.0.lock();
        if slowest.is_none_or(|known| known.took <= took || at.since(known.at) > LATELY) {
            *slowest = Some(Answered { at, took });
        }
    }

    pub(super) fn slowest(&self, now: Moment) -> Duration {
        let lately = self.0.lock().filter(|known| now.since(known.at) <= LATELY);
        lately.map_or(Duration::ZERO, |known| known.took)
    }
}
