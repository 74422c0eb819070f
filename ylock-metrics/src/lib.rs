//! Metrics of [ylock](https://docs.rs/ylock), through the crate [`metrics`].
//!
//! ```
//! use ylock::Ylock;
//! use ylock::metrics::MetricsLayer;
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
//! // First a recorder, for example `ylock::metrics::prometheus::install("127.0.0.1:9000")`. Then:
//! let ylock = Ylock::in_memory().layer(MetricsLayer::new());
//! assert!(ylock.locks("users").write("alice").await?.unlock().await?.is_released());
//! # Ok(()) }
//! ```
//!
//! # What is measured
#![doc = include_str!("../metrics.md")]
// The example of the README is a test.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod catalogue;
mod group;
mod groups;
mod layer;
mod outcome;
#[cfg(feature = "prometheus")]
pub mod prometheus;
mod recorder;
mod sampler;
mod series;

pub use layer::MetricsLayer;
