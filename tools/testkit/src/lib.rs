//! The conformance suite: what every engine must do, one named test per case.
//!
//! An engine implements [`Harness`] and says [`conformance_tests!`](crate::conformance_tests):
//!
//! ```
//! use ylock_testkit::MemoryHarness;
//!
//! ylock_testkit::conformance_tests!(MemoryHarness::new());
//! ```
//!
//! Attributes for every test may follow, as in `conformance_tests!(harness, #[ignore = "needs a server"])`.
//!
//! A case gets a [`Fixture`]: a group of its own in the store, and as many clients as it asks for, each a stranger to the
//! others. It may pause, kill and disturb them ([`Process`], [`Faulty`]). A case is left out only because its engine
//! does not [declare](ylock_core::Guarantees) what it needs; then it passes, says so, and writes a line to the file that
//! `YLOCK_SKIPS_FILE` names. Nothing orders events by sleeping: a case polls until what it waits for has
//! happened ([`eventually`]), and a case dies when it makes no progress for the harness's bound. The short run asks a harness, by its [`Role`], only
//! what it [decides](DecidedBy).
//!
//! # Left out
//!
//! The suite began as a list of 79 cases. Most are here, merged or split where that reads better. Not here:
//!
//! | case | why, and where it is |
//! |---|---|
//! | unlock of a lock that is not held; unlock twice | cannot be written: `unlock` takes the guard |
//! | a real child process excludes | needs processes: the fault tests of each engine. Here two clients stand for it |
//! | overflow of the count of reentries | the count has 32 bits, too many for a case; an overflow is an error |
//! | a longest time to hold | no such option |
//! | tokens and grants survive a restart of the store | needs a server that restarts: the fault tests of each engine |
//! | an entry of an old session is not taken for mine | only engines with sessions: their own tests |
//! | the store is down: an error in time; the store is back: waiters go on | needs a server: the fault tests of each engine; `tests/keeper/failures.rs` has the keeper's part |
//! | metrics: counts match, reentry counted once, a failing sink does no harm | above the engines: `ylock-metrics`; `layers` has what engines tell |
//!
//! # The tests of the core
//!
//! Those that need faults and wrappers are in `tests/` of this crate, as is the suite over the in-memory engine: the core does not depend on
//! its own test kit, not even for tests.
#![allow(clippy::exhaustive_enums, clippy::exhaustive_structs, reason = "not published")]
#![allow(
    clippy::disallowed_methods,
    reason = "a test stands outside: it looks at real time and starts tasks of its own"
)]

#[cfg(feature = "suite")]
pub mod cases;
pub mod measure;
#[cfg(feature = "suite")]
pub mod model;
pub mod own_servers;

mod child_process;
#[cfg(feature = "suite")]
mod client;
#[cfg(feature = "suite")]
mod contender;
#[cfg(feature = "suite")]
mod contestant;
mod faults;
#[cfg(feature = "suite")]
mod fixture;
#[cfg(feature = "suite")]
mod harness;
#[cfg(feature = "suite")]
mod list;
mod log;
mod long;
#[cfg(feature = "suite")]
mod memory;
mod oracle;
mod outage;
mod pace;
#[cfg(feature = "suite")]
mod patient;
mod polls;
#[cfg(feature = "suite")]
mod registry;
#[cfg(feature = "suite")]
mod runner;
mod timed;
mod undisturbed;
mod waiting;
mod wrapper;

pub use child_process::ChildProcess;
#[cfg(feature = "suite")]
pub use client::Client;
#[cfg(feature = "suite")]
pub use contender::Contender;
pub use faults::{
    CountsCalls, Fault, Faulty, KillableEngine, LosesEvery, LosesReplies, Outage, Process, Slow, WallClock,
};
#[cfg(feature = "suite")]
pub use fixture::Fixture;
#[cfg(feature = "suite")]
pub use harness::Harness;
pub use log::Log;
pub use long::{part_again, part_of, short_or_long};
#[cfg(feature = "suite")]
pub use memory::MemoryHarness;
pub use oracle::{ExclusionOracle, FencedRegister, Stale};
pub use outage::an_outage_is_told_as_one;
pub use pace::quiet_time;
#[cfg(feature = "suite")]
pub use patient::answered;
pub use polls::{poll_once, poll_times};
#[cfg(feature = "suite")]
pub use registry::{Body, CASES, Case, DecidedBy, Need, Role};
#[cfg(feature = "suite")]
pub use runner::{note_skip, run_case, run_test};
pub use timed::Timed;
pub use undisturbed::undisturbed;
pub use waiting::{eventually, while_it_goes_on, within};
pub use wrapper::{Call, Wrapped, Wrapper};

/// Every promise that an engine can make. An engine's tests say which of them it does not.
pub const ALL_GUARANTEES: ylock_core::Guarantees = ylock_core::Guarantees::NONE
    .with_exclusive(true)
    .with_fair(true)
    .with_fencing(true)
    .with_shared_reads(true)
    .with_durable(true)
    .with_exclusive_after_failover(true);
