//! Which room may use which: the drawing of ARCHITECTURE.md, for `cargo xtask check`.

/// The rooms of one crate. A room is a module of the crate's root, with all that is inside.
pub(super) struct Plan {
    /// The folder of the crate's sources.
    pub(super) sources: &'static str,
    /// The rooms by floors, from the top down. A room may use the rooms below its floor, and none beside it or above it. Rooms that are
    /// not named here are on the ground, below all floors, and may use each other.
    pub(super) floors: &'static [&'static [&'static str]],
    pub(super) exceptions: &'static [Exception],
}

/// A use that the floors forbid and that is allowed all the same.
pub(super) struct Exception {
    pub(super) user: &'static str,
    pub(super) used: &'static str,
}

/// Options keep the session, or the address of the client, that the program has handed over. The driver names the type of it, because no
/// other room may name the driver's crate.
const HANDED_OVER: Exception = Exception { user: "options", used: "driver" };

pub(super) const PLANS: [Plan; 4] = [
    Plan {
        sources: "ylock-core/src",
        floors: &[
            &["testkit"],
            &["client"],
            &["locks"],
            &["lock"],
            &["acquire"],
            &["guard"],
            &["terms"],
            &["handle", "lease"],
            &["keeper", "layer"],
            &["events"],
        ],
        exceptions: &[],
    },
    Plan {
        sources: "engine-cassandra/src",
        floors: &[&["driver_api"], &["engine"], &["driver", "seats"], &["algorithm"]],
        exceptions: &[HANDED_OVER],
    },
    Plan {
        sources: "engine-redis/src",
        floors: &[
            &["driver_api"],
            &["engine"],
            &["acquire", "inspect"],
            &["client"],
            &["clock"],
            &["driver"],
        ],
        exceptions: &[HANDED_OVER],
    },
    Plan {
        sources: "engine-zookeeper/src",
        floors: &[&["driver_api"], &["engine"], &["driver"], &["algorithm"]],
        exceptions: &[HANDED_OVER],
    },
];

impl Plan {
    /// Returns whether a room may use another room.
    pub(super) fn allows(&self, user: &str, used: &str) -> bool {
        let (above, below) = (self.floor(user), self.floor(used));
        let is_on_the_ground = below == self.floors.len();
        let is_excepted = || self.exceptions.iter().any(|one| one.user == user && one.used == used);
        user == used || is_on_the_ground || above < below || is_excepted()
    }

    /// Returns the number of the room's floor, from the top; that of the ground is the largest.
    fn floor(&self, room: &str) -> usize {
        self.floors.iter().position(|floor| floor.contains(&room)).unwrap_or(self.floors.len())
    }
}
