//! What goes wrong around the command: readers that have gone, links of strangers, processes that do not end, a time that it stands still.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::symlink;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::support::{Place, bare, end, eventually, ignored_signals};

/// Runs until a file `go` is there, and has a file `pid` with its number.
pub(crate) const WAITS: &str = "echo $$ > pid; while [ -d $PLACE ] && [ ! -e go ]; do sleep 0.02; done";

pub(crate) fn pid(place: &Place, file: &str) -> Pid {
    place.wait_for(file);
    Pid::from_raw(place.read(file).trim().parse().unwrap()).unwrap()
}

pub(crate) fn lives(pid: Pid) -> bool {
    // A zombie has ended; nothing waits for one whose parent was killed.
    let status = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    status.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

#[test]
fn a_command_is_stopped_also_when_no_reader_is_left_for_what_is_said() {
    for ignores in ["", "trap '' TERM; "] {
        let place = Place::new();
        let script = format!("{ignores}{WAITS}");
        let arguments = ["run", "--grace", "200ms", "users/alice", "--", "sh", "-c", &script];
        let mut running =
            place.ylock(&arguments).stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let command = pid(&place, "pid");
        drop(running.stderr.take());
        assert_eq!(place.output(&["revoke", "--yes", "users/alice"]).code, Some(0));
        eventually("it ends", || running.try_wait().unwrap().is_some());
        assert_eq!(running.wait().unwrap().code(), Some(73));
        assert!(!lives(command));
    }
}

#[test]
fn other_processes_of_the_command_are_stopped_with_it() {
    let place = Place::new();
    let script = format!("(trap '' TERM; {WAITS}) & trap 'exit 0' TERM; echo here > held; wait");
    // `$$` is the number of the outer shell, in the inner one too.
    let script = script.replace("echo $$ > pid", "sh -c 'echo $PPID > pid'");
    let running = place.start(&["run", "--grace", "300ms", "users/alice", "--", "sh", "-c", &script]);
    place.wait_for("held");
    let other = pid(&place, "pid");
    assert_eq!(place.output(&["revoke", "--yes", "users/alice"]).code, Some(0));
    assert_eq!(running.ended().code, Some(73));
    eventually("it is gone, too", || !lives(other));
}

#[test]
fn a_signal_that_is_ignored_stays_so() {
    let place = Place::new();
    let script = format!("grep SigIgn /proc/self/status > ignored; {WAITS}");
    let arguments =
        format!("trap '' HUP; exec {} run users/alice -- sh -c '{script}'", env!("CARGO_BIN_EXE_ylock"));
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &arguments]).env("YLOCK_STORE", place.store()).env("PLACE", place.path());
    shell.current_dir(place.path());
    let mut running = shell.stdin(Stdio::null()).spawn().unwrap();
    let command = pid(&place, "pid");
    let ylock = Pid::from_raw(running.id().cast_signed()).unwrap();
    kill_process(ylock, Signal::HUP).unwrap();
    kill_process(command, Signal::HUP).unwrap();
    place.make("go");
    assert_eq!(running.wait().unwrap().code(), Some(0));
    assert_eq!(ignored_signals(&place.read("ignored")) & 1, 1, "HUP is number 1");
}

#[test]
fn a_link_in_the_place_of_the_folder_is_refused() {
    // The folder is that of the number of the user: as another user, which takes root.
    if !rustix::process::geteuid().is_root() {
        return println!("SKIPPED needs root");
    }
    // Of this process alone: another run of this test may be under way.
    let victim = 1_000_000 + std::process::id();
    let place = Place::new();
    let link = format!("/tmp/ylock-{victim}");
    let _ = fs::remove_file(&link);
    fs::create_dir(place.path().join("clients")).unwrap();
    symlink(place.path(), &link).unwrap();
    let mut command = bare(&["run", "users/alice", "--", "true"]);
    std::os::unix::process::CommandExt::uid(&mut command, victim);
    command.env("HOME", "/nonexistent");
    let ended = end(command);
    fs::remove_file(&link).unwrap();
    assert!(ended.code == Some(64) && ended.stderr.contains("not a folder"), "{ended:?}");
}

#[test]
fn what_is_shown_does_nothing_to_a_terminal_and_json_is_json() {
    let place = Place::new();
    let name = "users/a\u{7f}\u{9b}\u{1b}[31m\u{202e}b";
    let seen = place.output(&["inspect", "--json", name]);
    let read: Value = serde_json::from_str(&seen.stdout).unwrap_or_else(|error| panic!("{error}: {seen:?}"));
    assert_eq!(format!("users/{}", read["name"].as_str().unwrap()), name);
    let running = place.start(&["run", name, "--", "sh", "-c", WAITS]);
    pid(&place, "pid");
    let not_free = place.output(&["run", "-n", name, "--", "true"]);
    let listed = place.output(&["list"]);
    for text in [&seen.stdout, &not_free.stderr, &listed.stdout] {
        assert!(
            !text.trim_end().chars().any(|c| (c.is_control() && c != '\n') || c == '\u{202e}'),
            "{text:?}"
        );
    }
    place.make("go");
    assert_eq!(running.ended().code, Some(0));
}

#[test]
fn a_reader_that_has_had_enough_ends_the_command() {
    let place = Place::new();
    for arguments in [&["doctor"][..], &["inspect", "users/alice"]] {
        // It has gone before the command begins to write.
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = place.ylock(arguments).stdout(writer).stderr(Stdio::piped()).output().unwrap();
        assert!(output.status.code() == Some(128 + 13) && output.stderr.is_empty(), "{output:?}");
    }
}

#[test]
fn a_program_that_is_not_there_does_not_use_up_a_period() {
    let place = Place::new();
    let run =
        |command: &str| place.output(&["run", "--once-per", "360days", "jobs/report", "--", command]).code;
    assert_eq!((run("no-such-command-at-all"), run("true")), (Some(127), Some(0)));
    let again = place.output(&["run", "--once-per", "360days", "jobs/report", "--", "true"]);
    assert!(again.stderr.contains("has run it"), "{again:?}");
    assert_eq!(
        place.output(&["run", "--wait", "500000000000years", "users/alice", "--", "true"]).code,
        Some(0)
    );
}

#[test]
fn a_store_that_would_not_exclude_others_is_refused() {
    let place = Place::new();
    let of_process = place.output(&["--store", "memory://", "run", "users/alice", "--", "true"]);
    assert_eq!(of_process.code, Some(64), "{of_process:?}");
    let mut command = place.ylock(&["run", "users/alice", "--", "true"]);
    command.env("YLOCK_STORE", OsString::from_vec(vec![0xff]));
    assert_eq!(end(command).code, Some(64));
}
