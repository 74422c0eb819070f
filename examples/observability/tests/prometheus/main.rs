//! Tests with a real Prometheus, which they start; `promtool` is in the same folder as `prometheus`.

#![cfg(feature = "workload")]
#![allow(missing_docs, reason = "tests")]
#![allow(clippy::disallowed_methods, reason = "here time is just time")]

mod answers;
mod files;
mod server;
mod watched;
