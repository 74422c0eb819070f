//! A time that `ylock` stands still.

use std::fs;

use rustix::process::{Pid, Signal};

use crate::hostile::{WAITS, lives, pid};
use crate::support::{Place, eventually};
use crate::terminal::Terminal;

/// Returns the letter of a process's state.
fn state(process: Pid) -> Option<char> {
    let status = fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero())).unwrap_or_default();
    status.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next())
}

/// Returns whether a process stands still. A shell that is stopped while it starts a program may not look stopped itself: it waits for its child to become
/// that program (`vfork`), and the child was stopped before it had.
fn is_stopped(process: Pid) -> bool {
    match state(process) {
        Some('T') => true,
        Some('D') => children(process).into_iter().any(|child| state(child) == Some('T')),
        _ => false,
    }
}

fn children(process: Pid) -> Vec<Pid> {
    let number = process.as_raw_nonzero();
    let children = fs::read_to_string(format!("/proc/{number}/task/{number}/children")).unwrap_or_default();
    children.split_whitespace().filter_map(|child| Pid::from_raw(child.parse().ok()?)).collect()
}

/// Nothing renews the lock meanwhile.
#[test]
fn a_command_stands_still_while_ylock_does() {
    let place = Place::new();
    let running = place.start(&["run", "users/alice", "--", "sh", "-c", WAITS]);
    let command = pid(&place, "pid");
    running.send(Signal::TSTP);
    eventually("the command is stopped", || is_stopped(command));
    running.send(Signal::CONT);
    eventually("it goes on", || !is_stopped(command));
    running.send(Signal::TSTP);
    eventually("the command is stopped again", || is_stopped(command));
    // A stopped holder loses the lock when its lease is over.
    assert_eq!(place.output(&["run", "--wait", "15s", "users/alice", "--", "true"]).code, Some(0));
    assert!(is_stopped(command), "no two at work");
    running.send(Signal::CONT);
    assert_eq!(running.ended().code, Some(73));
    assert!(!lives(command));
}

/// There the command has no group of its own, and the terminal tells it to stop; another sender does not.
#[test]
fn a_command_in_the_foreground_of_a_terminal_stands_still_with_ylock_too() {
    let place = Place::new();
    let mut terminal =
        Terminal::start_in_foreground(&place, &["run", "users/alice", "--", "sh", "-c", WAITS]);
    let command = pid(&place, "pid");
    for by_terminal in [false, true] {
        if by_terminal {
            terminal.press("\u{1a}");
        } else {
            terminal.send(Signal::TSTP);
        }
        eventually("the command is stopped", || is_stopped(command));
        terminal.send(Signal::CONT);
        eventually("it goes on", || !is_stopped(command));
    }
    place.make("go");
    assert_eq!(terminal.ended().code, Some(0));
}
