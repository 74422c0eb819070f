//! Dashboards for Grafana, rules and alerts for Prometheus, and a workload that shows them, for the metrics of ylock. The `README.md` of
//! this example says how to use them.

#![allow(clippy::disallowed_methods, reason = "an example sleeps and spawns like any program")]

pub mod dashboards;
pub mod files;
pub mod picture;
pub mod prometheus;
pub mod query;
pub mod rules;
#[cfg(feature = "workload")]
pub mod workload;
