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

/// Nothing renews the lock meanwhile.
#[test]
fn a_command_stands_still_while_ylock_does() {
    let place = Place::new();
    let running = place.start(&["run", "users/alice", "--", "sh", "-c", WAITS]);
    let command = pid(&place, "pid");
    let state = || state(command);
    running.send(Signal::TSTP);
    eventually("the command is stopped", || state() == Some('T'));
    running.send(Signal::CONT);
    eventually("it goes on", || state().is_some_and(|state| state != 'T'));
    running.send(Signal::TSTP);
    eventually("the command is stopped again", || state() == Some('T'));
    // A stopped holder loses the lock when its lease is over.
    assert_eq!(place.output(&["run", "--wait", "15s", "users/alice", "--", "true"]).code, Some(0));
    assert_eq!(state(), Some('T'), "no two at work");
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
        eventually("the command is stopped", || state(command) == Some('T'));
        terminal.send(Signal::CONT);
        eventually("it goes on", || state(command).is_some_and(|state| state != 'T'));
    }
    place.make("go");
    assert_eq!(terminal.ended().code, Some(0));
}
