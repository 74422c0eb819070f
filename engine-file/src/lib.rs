//! File engine of `ylock`: `file:///folder`, for the processes of one host.
#![doc = "\n"]
#![doc = include_str!("../guarantees.md")]
// The example of the README is a test.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]
#![cfg_attr(docsrs, feature(doc_cfg))]

use std::time::Duration;

use ylock_core::{Options, Result};

pub mod options;

#[cfg(target_os = "linux")]
mod acquire;
#[cfg(target_os = "linux")]
mod announcing;
#[cfg(target_os = "linux")]
mod attend;
#[cfg(target_os = "linux")]
mod client;
#[cfg(target_os = "linux")]
mod client_id;
#[cfg(target_os = "linux")]
mod driver;
#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(target_os = "linux")]
mod engine;
#[cfg(target_os = "linux")]
mod idle;
#[cfg(target_os = "linux")]
mod inspect;
#[cfg(target_os = "linux")]
mod let_in;
#[cfg(target_os = "linux")]
mod message;
#[cfg(target_os = "linux")]
mod place;
#[cfg(target_os = "linux")]
mod release;
#[cfg(target_os = "linux")]
mod renew;
#[cfg(target_os = "linux")]
mod runs;
#[cfg(target_os = "linux")]
mod state;
#[cfg(target_os = "linux")]
mod sweep;
#[cfg(target_os = "linux")]
mod waiters;

#[cfg(target_os = "linux")]
#[doc(hidden)]
pub use driver::stop_at;
#[cfg(not(target_os = "linux"))]
pub use elsewhere::FileEngine;
#[cfg(target_os = "linux")]
pub use engine::FileEngine;
pub use options::FileOptions;

/// The engine's name in errors, as URL scheme and as metric label.
pub(crate) const NAME: &str = "file";
/// How long a key may be locked by another process, which needs it for microseconds, until an operation counts as unanswered. Less than a third
/// of every lease that there is.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_millis(30);

/// Fails if the engine cannot keep these options.
pub(crate) fn check(options: &Options) -> Result<()> {
    ylock_core::options::check_lease(options.lease(), REQUEST_TIMEOUT)
}
