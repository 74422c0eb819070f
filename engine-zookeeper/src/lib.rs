//! ZooKeeper engine of `ylock`: `zookeeper://host1,host2,host3/path`.
#![doc = "\n"]
#![doc = include_str!("../guarantees.md")]
// The example of the README is a test.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]
#![cfg_attr(docsrs, feature(doc_cfg))]

// Simulations and tests put other servers below the algorithm. Programs have no use for that, and semver does not cover it.
#[doc(hidden)]
#[allow(clippy::exhaustive_enums, clippy::exhaustive_structs, reason = "not covered by semver")]
pub mod algorithm;
#[cfg(feature = "zookeeper-client-0-11")]
pub mod driver_api;
pub mod options;

mod driver;
mod engine;

pub use engine::ZookeeperEngine;
pub use options::ZookeeperOptions;

/// The engine's name in errors, as URL scheme and as metric label.
pub(crate) const NAME: &str = "zookeeper";
