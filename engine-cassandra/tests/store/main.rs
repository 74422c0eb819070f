//! The table over a real cluster. Run with `cargo xtask test`, which starts the servers.

#![allow(clippy::disallowed_methods, reason = "tests of real servers wait in real time")]

mod cluster;
mod connecting;
mod damaged;
mod expiry;
mod listing;
mod log;
mod login;
mod order;
mod roundtrip;
mod rule;
mod schema;
mod time;
