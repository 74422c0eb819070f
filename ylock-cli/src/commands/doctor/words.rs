//! What is found, in words.

use std::time::Duration;

use serde_json::{Value, json};
use ylock::Guarantees;
use ylock::engine::{ClockReading, ServerReport};

pub(super) fn promises(guarantees: Guarantees) -> [(&'static str, bool); 6] {
    let Guarantees { exclusive, fair, fencing, shared_reads, durable, exclusive_after_failover, .. } =
        guarantees;
    [
        ("that a lock that is held is kept for its holder", exclusive),
        ("that clients are served in the order in which they came", fair),
        ("a fencing token that grows from holder to holder", fencing),
        ("that readers share a lock", shared_reads),
        ("that a lock outlives a restart of the store", durable),
        ("that a lock stays exclusive when another server takes over", exclusive_after_failover),
    ]
}

/// Returns the facts of a server in one line.
pub(super) fn server(server: &ServerReport) -> String {
    let version = server.version.as_ref().map(|version| format!("version {version}"));
    let login = server.login.as_ref().map(|user| format!("logged in as {user:?}"));
    let encrypted =
        server.encrypted.map(|encrypted| (if encrypted { "with TLS" } else { "without TLS" }).to_owned());
    let trip = server.round_trip.map(|trip| format!("answers within {}", time(trip)));
    let facts = [version, server.role.clone(), login, encrypted, trip, server.clock.map(clock)];
    let facts: Vec<_> = facts.into_iter().flatten().collect();
    format!("{}: {}", server.address, if facts.is_empty() { "answers".to_owned() } else { facts.join(", ") })
}

pub(super) fn json(server: &ServerReport) -> Value {
    let ServerReport { address, version, role, login, encrypted, clock, round_trip, .. } = server;
    json!({
        "address": address, "version": version, "role": role, "login": login, "tls": encrypted,
        "clock_ahead": clock.map(|clock| json!({"least": seconds(clock.least), "most": seconds(clock.most)})),
        "round_trip": round_trip.map(|trip| trip.as_secs_f64()),
    })
}

fn seconds(micros: i64) -> f64 {
    micros as f64 / 1e6
}

/// Returns what is known of a clock: how far it is from that of this machine, at most if they may agree.
fn clock(reading: ClockReading) -> String {
    let micros = |micros: i64| time(Duration::from_micros(micros.unsigned_abs()));
    match reading {
        ClockReading { least, .. } if least > 0 => format!("clock ahead of this one by {}", micros(least)),
        ClockReading { most, .. } if most < 0 => format!("clock behind this one by {}", micros(most)),
        ClockReading { least, most, .. } => format!("clock within {} of this one", micros(most.max(-least))),
    }
}

/// Returns a time to the microsecond.
pub(super) fn time(time: Duration) -> String {
    humantime::format_duration(Duration::from_micros(time.as_micros() as u64)).to_string()
}
