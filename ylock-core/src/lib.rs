//! The core of `ylock`: the locks that users hold, the keeper below them, the in-memory engine, and the trait that engines
//! implement. Programs use the crate `ylock`, which adds the engines.
//!
//! The way down, and where to read:
//! - [`Locks`], [`Lock`], [`Guard`], [`Lease`]: the values that a user holds; [`Acquire`]: one acquisition.
//! - [`MultiLock`], [`TwoPhaseLocking`]: several locks at once.
//! - [`Semaphore`]: at most so many holders at a time.
//! - [`layer`]: middleware, seen from the user's side.
//! - `keeper` (private): reentrancy, the local queue, renewal, loss and release, once for all engines.
//! - [`engine`]: the trait that an engine implements.
//! - [`queue`]: the contenders for one key, pure; for engines to run on, and for tests to compare them with.
//! - [`environment`]: the one seam for time, randomness and tasks.
// The example of the README is a test.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod engine;
pub mod environment;
pub mod layer;
pub mod options;
pub mod url;

// What engines are built from: not covered by semver.
#[doc(hidden)]
pub mod backoff;
#[doc(hidden)]
pub mod connecting;
#[doc(hidden)]
#[allow(clippy::exhaustive_enums, clippy::exhaustive_structs, reason = "not covered by semver")]
pub mod connection;
#[doc(hidden)]
pub mod contact;
#[doc(hidden)]
#[allow(clippy::exhaustive_enums, clippy::exhaustive_structs, reason = "not covered by semver")]
pub mod queue;
#[doc(hidden)]
#[allow(clippy::exhaustive_enums, clippy::exhaustive_structs, reason = "not covered by semver")]
pub mod records;
#[doc(hidden)]
pub mod retry_deadline;
#[doc(hidden)]
pub mod server_clock;
#[doc(hidden)]
pub mod stored_version;

mod acquire;
mod availability;
mod bell;
mod client;
mod client_name;
mod closed_set;
mod deadline;
mod diagnostics;
mod early_renewals;
mod election;
mod error;
mod events;
mod foreign;
mod guarantees;
mod guard;
mod handle;
mod job_run;
mod keeper;
mod key;
mod key_page;
mod lease;
mod listing;
mod lock;
mod locks;
mod memory;
mod meter;
mod mode;
mod multi_lock;
mod name;
mod once_per;
mod owner;
mod period;
mod purpose;
mod semaphore;
#[cfg(feature = "serde")]
mod serialization;
#[cfg(feature = "stream")]
mod streams;
mod terms;
mod token;
mod unlocked;

pub use acquire::{Acquirable, Acquire, Reentrant, TryAcquire};
pub use client::Ylock;
pub use client_name::ClientName;
pub use election::{Election, Leader, Leaders, Leadership};
pub use engine::LossReason;
pub use error::{Error, ErrorKind, Result};
pub use guarantees::Guarantees;
pub use guard::Guard;
pub use job_run::JobRun;
pub use key::{Key, MAX_GROUP_BYTES, MAX_NAME_BYTES};
pub use layer::Layer;
pub use lease::Lease;
pub use listing::{Listed, Listing};
pub use lock::Lock;
pub use locks::Locks;
pub use memory::{MemoryEngine, MemoryStore};
pub use mode::Mode;
pub use multi_lock::{Guards, Leases, MAX_MEMBERS, MultiLock, TwoPhaseLocking};
pub use name::Name;
pub use once_per::{Completed, JobLease, JobOutcome};
pub use options::{Fairness, HandOver, Options};
pub use owner::Owner;
pub use period::Period;
pub use purpose::MAX_PERMITS;
pub use semaphore::{Permit, PermitLease, Semaphore, SemaphoreInspection};
pub use token::{StoreToken, Token};
pub use unlocked::Unlocked;
