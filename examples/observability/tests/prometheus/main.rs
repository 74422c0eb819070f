//! With a real Prometheus: it is started here, and `promtool` is beside it.

#![cfg(feature = "workload")]
#![allow(missing_docs, reason = "tests")]
#![allow(clippy::disallowed_methods, reason = "here time is just time")]

mod answers;
mod files;
mod server;
mod watched;
