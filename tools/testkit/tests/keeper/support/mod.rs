//! What several tests of the keeper need: runtimes, a clock that can be put forward, callers that wait, and an engine
//! that notes what it is asked; foreign code that panics.

mod asked;
mod between;
mod drops;
mod panics;
mod runtimes;
mod waits;
mod warped;

pub(crate) use asked::{Asked, Notes};
pub(crate) use between::{Gate, Meanwhile};
pub(crate) use drops::{Drops, given_back, within_bounds};
pub(crate) use panics::{PanickingLog, waits_with_panicking_waker};
pub(crate) use runtimes::{current_thread, over, paused, runtime};
pub(crate) use waits::{Waits, comes};
pub(crate) use warped::Warped;
