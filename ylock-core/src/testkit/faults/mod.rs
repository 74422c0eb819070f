//! Engines that misbehave as processes, networks and stores do.

mod faulty;
mod kinds;
mod life;
mod mortal;

pub use faulty::{Fault, Faulty};
pub use kinds::{CountsCalls, LosesEvery, LosesReplies, Outage, Slow};
pub use life::Life;
pub use mortal::KillableEngine;
