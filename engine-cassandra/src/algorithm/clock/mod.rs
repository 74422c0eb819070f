//! Clocks that order what happens on several machines.
//!
//! - `HybridClock`: the default. It needs no store, goes on when a neighbour's clock ran ahead and died, and is never behind what it
//!   has followed.
//! - [`GlobalTime`]: the time service of the thesis (section 5.4), one cell that all clients keep at the largest of their
//!   clocks. It costs a trip, and stands still after a clock that ran ahead.
//!
//! None of them decides which client may enter a lock. A wrong clock costs fairness, never exclusion.

use std::time::Duration;

mod global;
mod hybrid;

pub use global::{GlobalTime, TimeCell};
pub(crate) use hybrid::{HybridClock, Stamps};

/// Returns a duration as the clocks count, in microseconds.
fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}
