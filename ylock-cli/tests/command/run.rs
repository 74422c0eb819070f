//! `ylock run`.

use crate::support::{Ended, Place, Running, eventually};

/// Starts a holder, and returns when its command runs. It ends when the file `go` is made.
fn holder(place: &Place, arguments: &[&str]) -> Running {
    let script = place.until("held", "go");
    let running = place.start(&[&["run"], arguments, &["--", "sh", "-c", &script]].concat());
    place.wait_for("held");
    running
}

#[test]
fn the_exit_code_is_that_of_the_command() {
    let place = Place::new();
    for code in [0, 1, 42, 255] {
        let script = format!("exit {code}");
        assert_eq!(place.output(&["run", "users/alice", "--", "sh", "-c", &script]).code, Some(code));
    }
    assert_eq!(place.output(&["run", "users/alice", "--", "sh", "-c", "kill -USR1 $$"]).code, Some(128 + 10));
}

#[test]
fn a_command_that_cannot_be_run_is_told_apart() {
    let place = Place::new();
    let ended = place.output(&["run", "users/alice", "--", "no-such-command-at-all"]);
    assert_eq!(ended.code, Some(127), "{ended:?}");
    assert!(ended.stderr.contains("no-such-command-at-all"), "{ended:?}");
    place.make("data");
    assert_eq!(place.output(&["run", "users/alice", "--", "./data"]).code, Some(126));
    assert_eq!(place.output(&["run", "-n", "users/alice", "--", "true"]).code, Some(0), "given back");
}

#[test]
fn the_command_finds_lock_and_token_and_its_input() {
    let place = Place::new();
    let script = "echo $YLOCK_GROUP $YLOCK_NAME $YLOCK_TOKEN; cat";
    let mut tokens = Vec::new();
    for _ in 0..2 {
        let mut command = place.ylock(&["run", "files/etc/motd", "--", "sh", "-c", script]);
        let input = std::process::Stdio::piped();
        let mut child = command.stdin(input).stdout(std::process::Stdio::piped()).spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"typed\n").unwrap();
        let output = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
        let (first, rest) = output.split_once('\n').unwrap();
        assert_eq!(rest, "typed\n");
        let words: Vec<_> = first.split(' ').collect();
        assert_eq!(words[..2], ["files", "etc/motd"]);
        tokens.push(words[2].parse::<i64>().unwrap());
    }
    assert!(tokens[0] < tokens[1], "{tokens:?}");
}

#[test]
fn one_holds_and_another_waits() {
    let place = Place::new();
    let first = holder(&place, &["users/alice"]);
    let none = place.output(&["run", "--no-wait", "users/alice", "--", "touch", "two"]);
    assert_eq!(none.code, Some(75), "{none:?}");
    assert!(none.stderr.contains("users/alice is not free"), "{none:?}");
    assert_eq!(place.output(&["run", "--wait", "100ms", "users/alice", "--", "touch", "two"]).code, Some(75));
    assert_eq!(place.output(&["run", "users/bob", "--", "true"]).code, Some(0), "another lock");
    let second = place.start(&["run", "users/alice", "--", "sh", "-c", "echo > second"]);
    eventually("it waits", || place.output(&["inspect", "users/alice"]).stdout.contains("1. waits to write"));
    assert!(!place.has("second") && !place.has("two"));
    place.make("go");
    assert_eq!((first.ended().code, second.ended().code), (Some(0), Some(0)));
    assert!(place.has("second"));
}

#[test]
fn readers_share_and_permits_are_counted() {
    let place = Place::new();
    let reads = holder(&place, &["--read", "users/alice"]);
    assert_eq!(place.output(&["run", "-n", "--read", "users/alice", "--", "true"]).code, Some(0));
    assert_eq!(place.output(&["run", "-n", "users/alice", "--", "true"]).code, Some(75));
    place.make("go");
    assert_eq!(reads.ended().code, Some(0));

    let place = Place::new();
    let one = holder(&place, &["--permits", "2", "jobs/render"]);
    assert_eq!(place.output(&["run", "-n", "--permits", "2", "jobs/render", "--", "true"]).code, Some(0));
    std::fs::remove_file(place.path().join("held")).unwrap();
    let other = holder(&place, &["--permits", "2", "jobs/render"]);
    assert_eq!(place.output(&["run", "-n", "--permits", "2", "jobs/render", "--", "true"]).code, Some(75));
    let wrong = place.output(&["run", "-n", "--permits", "3", "jobs/render", "--", "true"]);
    assert_eq!(wrong.code, Some(64), "{wrong:?}");
    place.make("go");
    assert_eq!((one.ended().code, other.ended().code), (Some(0), Some(0)));
}

/// Runs a script, which does this when it is asked to end, until its lock is revoked. Returns what `ylock` has said.
fn lost(options: &[&str], when_asked: &str) -> Ended {
    let place = Place::new();
    let script = format!(
        "trap 'echo > asked; {when_asked}' TERM; echo here > held; while [ -d $PLACE ]; do sleep 0.02; done"
    );
    let arguments = [&["run"], options, &["users/alice", "--", "sh", "-c", &script]].concat();
    let running = place.start(&arguments);
    place.wait_for("held");
    assert_eq!(place.output(&["revoke", "--yes", "users/alice"]).code, Some(0));
    let ended = running.ended();
    assert_eq!(ended.code, Some(73), "{ended:?}");
    assert!(place.has("asked"), "{ended:?}");
    ended
}

#[test]
fn a_command_whose_lock_is_lost_is_stopped() {
    let ended = lost(&[], "exit 3");
    assert!(ended.stderr.contains("revoked"), "{ended:?}");
}

#[test]
fn a_command_that_does_not_stop_is_killed_after_the_grace() {
    let ended = lost(&["--grace", "300ms"], "true");
    assert!(ended.stderr.contains("KILL"), "{ended:?}");
}

/// Otherwise two commands would be at it each time.
#[test]
fn a_command_that_takes_too_long_is_stopped_and_keeps_the_lock_until_it_has_ended() {
    let place = Place::new();
    let script = "trap 'echo > asked; while [ -d $PLACE ] && [ ! -e go ]; do sleep 0.02; done; exit 3' TERM; \
                  while [ -d $PLACE ]; do sleep 0.02; done";
    let options = ["run", "--max-hold", "100ms", "--grace", "1h"];
    let running = place.start(&[&options[..], &["users/alice", "--", "sh", "-c", script]].concat());
    place.wait_for("asked");
    assert_eq!(place.output(&["run", "-n", "users/alice", "--", "true"]).code, Some(75));
    place.make("go");
    let ended = running.ended();
    assert_eq!(ended.code, Some(73), "{ended:?}");
    assert!(ended.stderr.contains("100ms, as long as --max-hold allows"), "{ended:?}");
    let next = place.output(&["run", "-n", "--max-hold", "1h", "users/alice", "--", "sh", "-c", "exit 3"]);
    assert_eq!(next.code, Some(3), "given back, and one that ends in time is not stopped: {next:?}");
}

#[test]
fn a_command_is_stopped_also_by_the_bound_of_the_store_s_url() {
    let place = Place::new();
    let store = format!("{}&max_hold=100ms", place.store());
    let script = "trap 'exit 3' TERM; while [ -d $PLACE ]; do sleep 0.02; done";
    let ended = place.output(&["--store", &store, "run", "users/alice", "--", "sh", "-c", script]);
    assert_eq!(ended.code, Some(73), "{ended:?}");
    assert!(ended.stderr.contains("the lock was lost (held_too_long)"), "{ended:?}");
}

#[test]
fn what_is_wrong_with_the_arguments_is_said() {
    let place = Place::new();
    for wrong in [
        &["run", "alice", "--", "true"][..],
        &["run", "users/alice"],
        &["run", "users/alice", "true"],
        &["run", "--wait", "soon", "users/alice", "--", "true"],
        &["run", "--read", "--permits", "2", "users/alice", "--", "true"],
        &["run", "--offset", "1m", "users/alice", "--", "true"],
        &["run", "--max-hold", "0s", "users/alice", "--", "true"],
        &["revoke", "users/alice"],
        &["revoke", "--yes", "--id", "xyz", "users/alice"],
        &["--store", "nonsense", "inspect", "users/alice"],
        &["--store", "redis://localhost/0?leas=2s", "inspect", "users/alice"],
        &["--config", "no-such-file", "inspect", "users/alice"],
        &["list", ""],
    ] {
        let ended = place.output(wrong);
        assert_eq!(ended.code, Some(64), "{wrong:?}: {ended:?}");
        assert!(!ended.stderr.is_empty(), "{wrong:?}");
    }
}
