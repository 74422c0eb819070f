//! Which room may use which: the drawing of ARCHITECTURE.md, for `cargo xtask check`. Those of an engine are in its `ENGINE`.

/// The rooms of one crate. A room is a module of the crate's root, with all that is inside.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The folder of the crate's sources.
    pub(crate) sources: &'static str,
    /// The rooms by floors, from the top down. A room may use the rooms below its floor, and none beside it or above it. Rooms that are
    /// not named here are on the ground, below all floors, and may use each other.
    pub(crate) floors: &'static [&'static [&'static str]],
    pub(crate) exceptions: &'static [Exception],
}

/// A use that the floors forbid and that is allowed all the same.
#[derive(Debug)]
pub(crate) struct Exception {
    pub(crate) user: &'static str,
    pub(crate) used: &'static str,
}

/// Options keep the session, or the address of the client, that the program has handed over. The driver names the type of it, because no
/// other room may name the driver's crate.
pub(crate) const HANDED_OVER: Exception = Exception { user: "options", used: "driver" };

pub(super) static CORE: Plan = Plan {
    sources: "ylock-core/src",
    floors: &[
        &["client", "streams"],
        &["listing", "locks"],
        &["lock", "multi_lock", "semaphore"],
        &["election", "once_per"],
        &["acquire"],
        &["guard"],
        &["terms"],
        &["handle", "lease"],
        &["keeper", "layer"],
        &["events"],
    ],
    exceptions: &[],
};

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
