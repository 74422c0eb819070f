//! Engines that misbehave as processes, networks and stores do.

mod faulty;
mod killable;
mod kinds;
mod process;
mod wall_clock;

pub use faulty::{Fault, Faulty};
pub use killable::KillableEngine;
pub use kinds::{CountsCalls, LosesEvery, LosesReplies, Outage, Slow};
pub use process::Process;
pub use wall_clock::WallClock;
