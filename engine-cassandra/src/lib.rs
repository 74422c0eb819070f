//! Cassandra engine of `ylock`: `cassandra://host1,host2,host3/keyspace`.
#![doc = "\n"]
#![doc = include_str!("../guarantees.md")]
// The example of the README is a test.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]
#![cfg_attr(docsrs, feature(doc_cfg))]

// The simulation, the benchmarks and the tests put another store below the algorithm, and read and write the table without it. Programs
// have no use for that, and semver does not cover it.
#[doc(hidden)]
#[allow(clippy::exhaustive_enums, clippy::exhaustive_structs, reason = "not covered by semver")]
pub mod algorithm;
#[doc(hidden)]
pub mod driver;
#[cfg(feature = "scylla-1")]
pub mod driver_api;
#[doc(hidden)]
#[allow(clippy::exhaustive_enums, clippy::exhaustive_structs, reason = "not covered by semver")]
pub mod hints;
pub mod options;

mod engine;
mod own_rows;

#[doc(hidden)]
pub use algorithm::clock;
pub use engine::CassandraEngine;
pub use hints::HintCounts;
pub use options::CassandraOptions;

/// The engine's name: in errors, as URL scheme and as metric label.
pub(crate) const NAME: &str = "cassandra";
