//! What the command does on the servers of a store: the real binary and real signals, the same on each.
#![allow(dead_code, reason = "each store's tests use another part of it")]

#[path = "../command/support.rs"]
pub(crate) mod support;
#[path = "../command/terminal.rs"]
pub(crate) mod terminal;

pub(crate) mod away;
pub(crate) mod ill;
pub(crate) mod signals;
pub(crate) mod well;

/// Returns a variable that `cargo xtask test` sets.
pub(crate) fn variable(name: &str) -> String {
    std::env::var(name)
        .unwrap_or_else(|_| panic!("{name} names the servers: run `cargo xtask test`, which starts them"))
}

/// Returns a group that no other test has, also none of an earlier run on the same servers.
fn group(of: &str) -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    format!("{of} {} {}", std::process::id(), now.as_nanos())
}

/// Returns what the command has said as JSON.
fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}
