//! The matrix of what is measured: every combination of place, names, call, lock, number of contenders and hold.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use ylock_core::closed_set;
use ylock_core::engine::Patience;
use ylock_engine_cassandra::options::{Notify, Protocol};

/// The contenders of the whole matrix.
pub(crate) const CONTENDERS: [u32; 8] = [1, 2, 4, 8, 16, 32, 64, 128];
/// The holds of the whole matrix, in milliseconds.
pub(crate) const HOLDS: [u64; 4] = [0, 1, 20, 100];
/// The round trips of the simulated store, in microseconds.
pub(crate) const ROUND_TRIPS: [u64; 3] = [200, 2_000, 40_000];

/// The place where a point is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Place {
    /// Three real nodes.
    Real,
    /// The simulated store, on virtual time.
    Simulated {
        /// The time that one request takes when nothing else happens.
        round_trip_micros: u64,
    },
}

/// The names that are locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Names {
    /// A new one in each round; all start at once, and each gets in once.
    Fresh,
    /// Always the same; all go in and out for a while.
    Hot,
}

closed_set! {
    /// Returns the words of tables and titles.
    pub(crate) Names: Fresh = "fresh name", Hot = "hot name"
}

/// The way in which the lock is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Call {
    GetLock,
    TryGetLock,
}

closed_set! {
    /// Returns the words of tables and titles.
    pub(crate) Call: GetLock = "GetLock", TryGetLock = "TryGetLock"
}

/// The lock that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Lock {
    /// Listings 3 and 4.
    Old,
    /// Listings 6 and 7.
    Queue,
    /// Listings 6 and 7, and contenders tell each other when one may go in: `notify=auto`.
    Told,
}

closed_set! {
    /// Returns the words of tables and titles.
    pub(crate) Lock: Old = "old", Queue = "queue", Told = "queue, told"
}

/// One measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Point {
    pub(crate) place: Place,
    pub(crate) names: Names,
    pub(crate) call: Call,
    pub(crate) contenders: u32,
    pub(crate) hold_millis: u64,
    pub(crate) lock: Lock,
}

impl Point {
    pub(crate) fn hold(&self) -> Duration {
        Duration::from_millis(self.hold_millis)
    }

    /// Returns whether it is measured. Only contenders that wait for their turn are told of it, and the simulated network has too few
    /// addresses for them.
    fn says_something(&self) -> bool {
        self.lock != Lock::Told || self.compares_told()
    }

    /// Returns whether it is part of the comparison of contenders that are told with those that look.
    pub(crate) fn compares_told(&self) -> bool {
        self.lock != Lock::Old
            && (self.place, self.names, self.call) == (Place::Real, Names::Hot, Call::GetLock)
    }

    /// Returns the seed of its randomness in the simulation: from the point itself, so that the order of points does not matter.
    pub(crate) fn seed(&self) -> u64 {
        // FNV-1a.
        self.to_string()
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
    }
}

/// Returns all points of these places.
pub(crate) fn points(places: &[Place], contenders: &[u32], holds: &[u64]) -> Vec<Point> {
    let mut points = Vec::new();
    for &place in places {
        for &names in Names::ALL {
            for &call in Call::ALL {
                for &hold_millis in holds {
                    for &contenders in contenders {
                        let of = |&lock| Point { place, names, call, contenders, hold_millis, lock };
                        points.extend(Lock::ALL.iter().map(of).filter(Point::says_something));
                    }
                }
            }
        }
    }
    points
}

impl Call {
    pub(crate) fn patience(self) -> Patience {
        match self {
            Self::GetLock => Patience::Queue,
            Self::TryGetLock => Patience::Try,
        }
    }
}

impl Lock {
    /// The locks that the thesis compares.
    pub(crate) const OF_THE_THESIS: [Self; 2] = [Self::Old, Self::Queue];

    pub(crate) fn protocol(self) -> Protocol {
        match self {
            Self::Old => Protocol::ShadowRows,
            Self::Queue | Self::Told => Protocol::Queue,
        }
    }

    pub(crate) fn notify(self) -> Notify {
        match self {
            Self::Old | Self::Queue => Notify::Off,
            Self::Told => Notify::Auto,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Real => f.write_str("real cluster"),
            Self::Simulated { round_trip_micros } => {
                write!(f, "simulated, {} ms round trip", *round_trip_micros as f64 / 1e3)
            }
        }
    }
}

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, names, call, contenders, hold_millis, lock } = self;
        write!(f, "{place}, {names}, {call}, {contenders} contenders, hold {hold_millis} ms, {lock}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_has_a_seed_of_its_own() {
        let places = [Place::Real, Place::Simulated { round_trip_micros: 200 }];
        let points = points(&places, &CONTENDERS, &HOLDS);
        let mut seeds: Vec<_> = points.iter().map(Point::seed).collect();
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!(seeds.len(), points.len());
        assert_eq!(points.len(), 2 * 2 * 2 * 4 * 8 * 2 + 4 * 8);
    }
}
