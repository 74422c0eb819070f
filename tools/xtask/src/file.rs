//! The file engine, which needs no servers.

use std::path::PathBuf;

use crate::{
    cargo,
    engine::{Bench, Engine},
    rooms::Plan,
};

pub(crate) static ENGINE: Engine = Engine {
    name: "file",
    packages: &["ylock-engine-file"],
    own_place: Some(|place| folder(place).display().to_string()),
    benches: &[Bench { wants_peers, ..Bench::new("file", "bench -p ylock-engine-file --bench file") }],
    // `rustix` is in every build: the core reads its clock by it.
    drivers: &["crc32fast"],
    rooms: &[Plan {
        sources: "engine-file/src",
        floors: &[
            &["engine"],
            &["attend"],
            &["acquire", "inspect", "renew", "sweep"],
            &["release", "runs"],
            &["client"],
            &["driver"],
        ],
        exceptions: &[],
    }],
    ..Engine::BASE
};

/// Returns the folder of a place, among what is built.
fn folder(place: &str) -> PathBuf {
    let target = cargo::workspace().join("target");
    target.canonicalize().unwrap_or(target).join(place)
}

/// Returns whether one of the arms is the hand-over; without a name all run.
fn wants_peers(arguments: &[String]) -> bool {
    let mut arms = arguments.iter().filter(|argument| !argument.starts_with("--")).peekable();
    arms.peek().is_none() || arms.any(|arm| arm == "hand-over")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_are_compiled_for_the_hand_over() {
        let wants = |arguments: &[&str]| {
            wants_peers(&arguments.iter().map(|&word| word.to_owned()).collect::<Vec<_>>())
        };
        assert!(wants(&[]) && wants(&["--awake"]) && wants(&["stress", "hand-over"]));
        assert!(!wants(&["stress"]));
    }
}
