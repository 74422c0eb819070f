//! A simulated cluster, simulated clients and their clocks, on virtual time; one seed decides everything.
//!
//! The algorithms and the engine run unchanged. See `ARCHITECTURE.md`.

pub mod chance;
pub mod client;
pub mod clocks;
pub mod faults;
pub mod oracle;
pub mod places;
pub mod run;
pub mod store;
pub mod trace;
pub mod world;

pub use faults::Fault;
pub use run::{Outcome, Setting, run};
