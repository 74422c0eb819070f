//! The budget of a point: every point has an end, whatever the lock does.

use std::time::Duration;

use crate::matrix::{Call, Names, Place, Point};

/// The budget of a point; see the [module](self). Time is that of the point's own environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Budget {
    /// The time within which rounds begin, and for which a hot name is measured.
    pub(crate) time: Duration,
    /// The longest round with a fresh name. A contender that has not got in by then has not got in.
    pub(crate) round: Duration,
    pub(crate) rounds: u32,
    /// The time for which a hot name is used before anything counts, unless it was granted `warm_up_grants` times before.
    pub(crate) warm_up: Duration,
    pub(crate) warm_up_grants: u64,
    /// The number of grants that is enough to say something.
    pub(crate) grants: u64,
    /// The number of requests that the simulation can do in a time that its user can wait for.
    pub(crate) requests: u64,
}

/// A measure of the simulation's work: every request touches the rows of all contenders.
const ROWS: u64 = 3_000_000;
/// Above what any real point needs.
const UNBOUNDED: u64 = u64::MAX;

impl Budget {
    pub(crate) fn of(point: &Point, quick: bool) -> Self {
        let whole = match point.place {
            Place::Real => real(point),
            Place::Simulated { .. } => simulated(point),
        };
        if quick { whole.small() } else { whole }
    }

    fn small(self) -> Self {
        let most = Duration::from_secs(1);
        Self {
            time: self.time.min(most),
            round: self.round.min(3 * most),
            rounds: self.rounds.min(2),
            warm_up: self.warm_up.min(most / 2),
            grants: self.grants.min(100),
            requests: self.requests.min(20_000),
            ..self
        }
    }
}

fn real(point: &Point) -> Budget {
    let second = Duration::from_secs(1);
    let turns = point.hold() * 2 * point.contenders;
    let time = match (point.names, point.call) {
        (Names::Fresh, _) => 2 * second,
        // Each contender shall have its turn twice where there are turns.
        (Names::Hot, Call::GetLock) => turns.clamp(4 * second, 30 * second),
        (Names::Hot, Call::TryGetLock) => 3 * second,
    };
    Budget {
        time,
        round: 20 * second,
        rounds: 50,
        warm_up: second,
        warm_up_grants: UNBOUNDED,
        grants: UNBOUNDED,
        requests: UNBOUNDED,
    }
}

fn simulated(point: &Point) -> Budget {
    let contenders = u64::from(point.contenders);
    let ten_minutes = Duration::from_secs(600);
    let rows = match (point.names, point.call) {
        // The old lock needs many requests before the first one is in.
        (Names::Fresh, Call::GetLock) => 4 * ROWS,
        (Names::Hot, Call::TryGetLock) => 2 * ROWS,
        _ => ROWS,
    };
    Budget {
        time: ten_minutes,
        round: ten_minutes,
        rounds: match (point.call, point.contenders) {
            (Call::TryGetLock, _) => 50,
            (Call::GetLock, ..=16) => 20,
            (Call::GetLock, _) => 5,
        },
        warm_up: Duration::from_secs(60),
        warm_up_grants: contenders + 20,
        grants: 5 * contenders + 100,
        requests: (rows / contenders).min(200_000),
    }
}
