//! Tests of dashboards, rules and alerts that need no server.

#![allow(missing_docs, reason = "tests")]

mod expressions;
mod files;
mod lint;
