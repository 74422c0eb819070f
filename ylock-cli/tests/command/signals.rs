//! Signals, and the end of `ylock` itself.

use rustix::process::Signal;

use crate::support::{Place, eventually, ignored_signals};

#[test]
fn signals_are_passed_on_to_the_command() {
    // A second one that asks it to end would be KILL.
    are_passed_on("INT");
    are_passed_on("TERM");
}

fn are_passed_on(but: &str) {
    let place = Place::new();
    let traps = "for s in HUP INT QUIT TERM USR1 USR2; do trap \"echo $s > got$s\" $s; done";
    let script = format!(
        "{traps}; {}",
        "echo here > held; while [ -d $PLACE ] && [ ! -e go ]; do sleep 0.02; done; exit 7"
    );
    let running = place.start(&["run", "users/alice", "--", "sh", "-c", &script]);
    place.wait_for("held");
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    for (name, signal) in [
        ("HUP", Signal::HUP),
        ("INT", Signal::INT),
        ("QUIT", Signal::QUIT),
        ("TERM", Signal::TERM),
        ("USR1", Signal::USR1),
        ("USR2", Signal::USR2),
    ] {
        // A shell makes what it starts in the background ignore some, and what is ignored stays so.
        if name == but || ignored_signals(&status) >> (signal.as_raw() - 1) & 1 == 1 {
            continue;
        }
        running.send(signal);
        place.wait_for(&format!("got{name}"));
    }
    assert_eq!(
        place.output(&["run", "-n", "users/alice", "--", "true"]).code,
        Some(75),
        "it still holds the lock"
    );
    place.make("go");
    assert_eq!(running.ended().code, Some(7));
}

#[test]
fn a_command_that_a_signal_has_ended_gives_the_lock_back() {
    let place = Place::new();
    let running = place.start(&["run", "users/alice", "--", "sh", "-c", &place.until("held", "go")]);
    place.wait_for("held");
    running.send(Signal::TERM);
    assert_eq!(running.ended().code, Some(128 + 15));
    assert_eq!(place.output(&["run", "-n", "users/alice", "--", "true"]).code, Some(0));
}

/// Has a command that notes each TERM and goes on.
const GOES_ON: &str = "trap 'echo >> asked' TERM; echo here > held; while [ -d $PLACE ]; do sleep 0.02; done";

#[test]
fn a_second_signal_ends_a_command_that_goes_on_and_gives_the_lock_back() {
    for second in [Signal::TERM, Signal::INT] {
        let place = Place::new();
        let running = place.start(&["run", "users/alice", "--", "sh", "-c", GOES_ON]);
        place.wait_for("held");
        running.send(Signal::TERM);
        place.wait_for("asked");
        running.send(second);
        let ended = running.ended();
        assert_eq!(ended.code, Some(128 + second.as_raw()), "{ended:?}");
        assert!(ended.stderr.contains("KILL") && !ended.stderr.contains("may stay"), "{ended:?}");
        assert_eq!(place.output(&["run", "-n", "users/alice", "--", "true"]).code, Some(0));
    }
}

#[test]
fn other_signals_are_passed_on_as_often_as_they_come() {
    let place = Place::new();
    let script = GOES_ON.replace("TERM", "HUP");
    let running = place.start(&["run", "users/alice", "--", "sh", "-c", &script]);
    place.wait_for("held");
    for times in 1..=3 {
        running.send(Signal::HUP);
        eventually("it is passed on", || place.read("asked").lines().count() == times);
    }
    running.send(Signal::TERM);
    assert_eq!(running.ended().code, Some(128 + 15));
}

#[test]
fn a_second_signal_ends_the_grace_of_a_command_whose_lock_is_lost() {
    let place = Place::new();
    let running = place.start(&["run", "--grace", "1day", "users/alice", "--", "sh", "-c", GOES_ON]);
    place.wait_for("held");
    assert_eq!(place.output(&["revoke", "--yes", "users/alice"]).code, Some(0));
    let asked = |times| eventually("it is asked", || place.read("asked").lines().count() == times);
    asked(1);
    running.send(Signal::TERM);
    asked(2);
    running.send(Signal::TERM);
    let ended = running.ended();
    assert!(ended.code == Some(128 + 15) && ended.stderr.contains("KILL"), "{ended:?}");
}

#[test]
fn a_signal_ends_a_wait_and_leaves_nothing_in_the_queue() {
    let place = Place::new();
    let holds = place.start(&["run", "users/alice", "--", "sh", "-c", &place.until("held", "go")]);
    place.wait_for("held");
    let waits = place.start(&["run", "users/alice", "--", "touch", "never"]);
    let inspected = || place.output(&["inspect", "users/alice"]).stdout;
    eventually("it waits", || inspected().contains("waits"));
    waits.send(Signal::INT);
    assert_eq!(waits.ended().code, Some(128 + 2));
    eventually("it has left", || !inspected().contains("waits"));
    place.make("go");
    assert_eq!(holds.ended().code, Some(0));
    assert!(!place.has("never"));
}

/// As `--help` says.
#[test]
fn when_ylock_is_killed_the_command_runs_on_without_the_lock() {
    let place = Place::new();
    let script = format!("{}; echo done > done", place.until("held", "go"));
    let running = place.start(&["run", "users/alice", "--", "sh", "-c", &script]);
    place.wait_for("held");
    // By KILL.
    drop(running);
    let next = place.output(&["run", "--wait", "10s", "users/alice", "--", "true"]);
    assert_eq!(next.code, Some(0), "the lock is free: {next:?}");
    assert!(!place.has("done"));
    place.make("go");
    place.wait_for("done");
}

/// As of a program that leaves its children to the system. The system then does not tell how they have ended.
#[test]
fn a_parent_that_ignores_the_end_of_its_children_does_not_hide_the_exit_code() {
    let place = Place::new();
    let starter = ["env", "--ignore-signal=CHLD"];
    let script = "grep SigIgn /proc/self/status > ignored; exit 7";
    let mut command = place.by(&starter, &["run", "users/alice", "--", "sh", "-c", script]);
    assert_eq!(command.status().unwrap().code(), Some(7));
    // Nor is it handed on to the command.
    let bits = u64::from_str_radix(place.read("ignored").trim().rsplit('\t').next().unwrap(), 16).unwrap();
    assert_eq!(bits >> (Signal::CHILD.as_raw() - 1) & 1, 0);
}
