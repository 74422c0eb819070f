//! Everything around the metrics of ylock: dashboards for Grafana, rules and alerts for Prometheus, a workload that shows them.
//! `README.md` beside it says how to use them.

#![allow(clippy::disallowed_methods, reason = "an example sleeps and spawns like any program")]

pub mod dashboards;
pub mod files;
pub mod picture;
pub mod prometheus;
pub mod query;
pub mod rules;
#[cfg(feature = "workload")]
pub mod workload;
