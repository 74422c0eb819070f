//! PostgreSQL engine of `ylock`: `postgres://user:password@host1,host2:port/database`.
#![doc = "\n"]
#![doc = include_str!("../guarantees.md")]
// The example of the README is a test.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "tokio-postgres-0_7")]
pub mod driver_api;
#[doc(hidden)]
pub mod functions;
pub mod options;

mod acquire;
mod client;
mod driver;
mod engine;
mod inspect;
mod keys;
mod place;
mod release;
mod renew;
mod runs;
mod sweep;
mod words;

pub use engine::PostgresEngine;
pub use options::PostgresOptions;

/// The engine's name in errors, as URL scheme and as metric label.
pub(crate) const NAME: &str = "postgres";
