//! Redis engine of `ylock`: `redis://host:port/database`, and the same behind Sentinels or in a cluster.
#![doc = "\n"]
#![doc = include_str!("../guarantees.md")]
// The example of the README is a test.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "redis-1")]
pub mod driver_api;
pub mod options;
#[doc(hidden)]
pub mod scripts;
#[doc(hidden)]
pub mod transport;

mod acquire;
mod client;
mod driver;
mod engine;
mod identity;
mod inspect;
mod keys;
mod place;
mod release;
mod renew;
mod runs;
mod stored;
mod words;

pub use engine::RedisEngine;
pub use options::RedisOptions;

/// The engine's name in errors, as URL scheme and as metric label.
pub(crate) const NAME: &str = "redis";
