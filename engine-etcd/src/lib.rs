//! etcd engine of `ylock`: `etcd://host1,host2,host3/prefix`.
#![doc = "\n"]
#![doc = include_str!("../guarantees.md")]
// The example of the README is a test.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]
#![cfg_attr(docsrs, feature(doc_cfg))]

// Simulations and tests put other servers below the algorithm. Programs have no use for that, and semver does not cover it.
#[doc(hidden)]
pub mod algorithm;
pub mod driver_api;
pub mod options;

mod driver;
mod engine;

pub use engine::EtcdEngine;
pub use options::EtcdOptions;

/// The engine's name in errors, as URL scheme and as metric label.
pub(crate) const NAME: &str = "etcd";
