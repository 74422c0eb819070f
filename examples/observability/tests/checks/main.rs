//! What can be said of dashboards, rules and alerts without a server.

#![allow(missing_docs, reason = "tests")]

mod expressions;
mod files;
mod lint;
