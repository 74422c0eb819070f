//! A simulated cluster, simulated clients and their clocks, on virtual time; one seed decides everything.
//!
//! The keeper, the engines and the algorithms run unchanged. See `ARCHITECTURE.md`.
#![allow(clippy::exhaustive_enums, clippy::exhaustive_structs, reason = "not published")]

pub mod backend;
pub mod belief;
pub mod chance;
pub mod client;
pub mod clocks;
pub mod connecting;
pub mod etcd;
pub mod facade;
pub mod faults;
mod led;
pub mod memory;
mod newcomer;
pub mod oracle;
pub mod places;
mod process;
pub mod redis;
pub mod run;
pub mod setting;
pub mod store;
pub mod trace;
pub mod world;
pub mod zookeeper;

pub use backend::Subject;
pub use facade::{Built, Sets};
pub use faults::Fault;
pub use run::run;
pub use setting::{Outcome, Setting};
