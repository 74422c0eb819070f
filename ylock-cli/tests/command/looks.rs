//! The commands that look: inspect, list, watch, revoke, doctor.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Place, Running, eventually};
use crate::terminal::Terminal;

fn hold(place: &Place, lock: &str, file: &str) -> Running {
    let running = place.start(&["run", lock, "--", "sh", "-c", &place.until(file, "go")]);
    place.wait_for(file);
    running
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn holders_and_waiters_are_shown() {
    let place = Place::new();
    let free = place.output(&["inspect", "users/alice"]);
    assert_eq!((free.code, &*free.stdout), (Some(0), "users/alice\n  free\n"));
    let holds = hold(&place, "users/alice", "held");
    let waits = place.start(&["run", "--read", "users/alice", "--", "true"]);
    eventually("it waits", || {
        place.output(&["inspect", "users/alice"]).stdout.contains("1. waits to read by ")
    });
    let seen = json(&place.output(&["inspect", "--json", "users/alice"]).stdout);
    assert_eq!((&seen["group"], &seen["name"]), (&"users".into(), &"alice".into()));
    let (holder, waiter) = (&seen["holders"][0], &seen["queue"][0]);
    assert_eq!((&holder["mode"], &waiter["mode"]), (&"write".into(), &"read".into()));
    assert!(
        holder["client"].as_str().unwrap().contains('/')
            && holder["token"].as_str().unwrap().parse::<i64>().is_ok(),
        "{seen}"
    );
    assert!(humantime::parse_rfc3339(holder["since"].as_str().unwrap()).is_ok(), "{seen}");
    place.make("go");
    assert_eq!((holds.ended().code, waits.ended().code), (Some(0), Some(0)));
}

#[test]
fn locks_are_listed_by_group() {
    let place = Place::new();
    assert_eq!(place.output(&["list"]).stdout, "");
    let held: Vec<_> = [("users/alice", "a"), ("users/bob", "b"), ("files/etc/motd", "c")]
        .map(|(lock, file)| hold(&place, lock, file))
        .into();
    let waits = place.start(&["run", "users/bob", "--", "true"]);
    eventually("it waits", || place.output(&["list", "users"]).stdout.contains("1 wait, the longest for"));
    let lines = |arguments: &[&str]| {
        let ended = place.output(arguments);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let mut lines: Vec<_> = ended.stdout.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let all = lines(&["list"]);
    let names: Vec<_> = all.iter().map(|line| line.split(": ").next().unwrap()).collect();
    assert_eq!(names, ["files/etc/motd", "users/alice", "users/bob"]);
    assert_eq!(lines(&["list", "users"]).len(), 2);
    assert_eq!(lines(&["list", "--limit", "1"]).len(), 1);
    let of_files = lines(&["list", "--json", "files"]);
    assert_eq!((of_files.len(), &json(&of_files[0])["name"]), (1, &"etc/motd".into()));
    place.make("go");
    held.into_iter().chain([waits]).for_each(|running| assert_eq!(running.ended().code, Some(0)));
    assert_eq!(lines(&["list"]).len(), 0);
}

/// A semaphore is one thing, and no lock; and what is printed is typed, whatever is in the group.
#[test]
fn a_semaphore_is_shown_and_revoked_by_the_name_that_is_printed() {
    let place = Place::new();
    let lock = hold(&place, "a%2Fb/render", "lock");
    let hold_permit = |file: &str| {
        let script = place.until(file, "go");
        let running =
            place.start(&["run", "--permits", "2", "semaphore:a%2Fb/render", "--", "sh", "-c", &script]);
        place.wait_for(file);
        running
    };
    let (one, other) = (hold_permit("one"), hold_permit("other"));
    let waits = place.start(&["run", "--permits", "2", "a%2Fb/render", "--", "true"]);
    eventually("it waits", || place.output(&["list"]).stdout.contains("1 wait, the longest for"));
    let listed = place.output(&["list", "a%2Fb"]).stdout;
    let mut names: Vec<_> = listed.lines().map(|line| line.split(": ").next().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["a%2Fb/render", "semaphore:a%2Fb/render"], "{listed}");
    assert!(listed.contains("semaphore:a%2Fb/render: 2 of 2 permits by "), "{listed}");
    let seen = place.output(&["inspect", names[1]]).stdout;
    assert!(seen.contains("2 of 2 permits are held") && seen.contains("1. waits by "), "{seen}");
    let as_json = json(&place.output(&["inspect", "--json", names[1]]).stdout);
    assert_eq!((&as_json["kind"], &as_json["permits"]), (&"semaphore".into(), &2.into()));
    assert_eq!(json(&place.output(&["inspect", "--json", names[0]]).stdout)["kind"], "lock");

    let id = as_json["holders"][0]["id"].as_str().unwrap();
    let revoked = place.output(&["revoke", "--yes", "--json", "--id", id, names[1]]);
    assert_eq!(json(&revoked.stdout)["revoked"], 1, "{revoked:?}");
    assert_eq!(waits.ended().code, Some(0), "it gets the permit");
    let revoked = place.output(&["revoke", "--yes", names[1]]);
    assert!(revoked.stdout.contains("from 1 holder"), "{revoked:?}");
    assert_eq!((one.ended().code, other.ended().code), (Some(73), Some(73)));
    place.make("go");
    assert_eq!(lock.ended().code, Some(0), "the lock of that name was not revoked");
    let unsaid = place.output(&["run", names[1], "--", "true"]);
    assert!(unsaid.code == Some(64) && unsaid.stderr.contains("--permits"), "{unsaid:?}");
    assert_eq!(place.output(&["inspect", names[1]]).stdout, "semaphore:a%2Fb/render\n  free\n");
}

#[test]
fn changes_are_watched_until_it_is_interrupted() {
    let place = Place::new();
    let mut watch = place.ylock(&["watch", "--every", "20ms", "--json", "users/alice"]);
    let mut watching = watch.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines().map(|line| json(&line.unwrap()));
    assert_eq!(lines.next().unwrap()["holders"].as_array().unwrap().len(), 0);
    let holds = hold(&place, "users/alice", "held");
    assert_eq!(lines.next().unwrap()["holders"].as_array().unwrap().len(), 1);
    place.make("go");
    assert_eq!(holds.ended().code, Some(0));
    assert_eq!(lines.next().unwrap()["holders"].as_array().unwrap().len(), 0);
    watching.kill().unwrap();
    watching.wait().unwrap();
}

#[test]
fn one_reader_of_two_is_revoked_by_its_id() {
    let place = Place::new();
    let script = "echo here > $FILE; while [ -d $PLACE ] && [ ! -e go ]; do sleep 0.02; done";
    let read = |file: &str| {
        let mut command = place.ylock(&["run", "--read", "users/alice", "--", "sh", "-c", script]);
        let running = command.env("FILE", file).stdin(Stdio::null()).spawn().unwrap();
        place.wait_for(file);
        running
    };
    let (mut one, mut other) = (read("one"), read("other"));
    let seen = json(&place.output(&["inspect", "--json", "users/alice"]).stdout);
    assert_eq!(seen["holders"].as_array().unwrap().len(), 2);
    let (id, client) =
        (seen["holders"][0]["id"].as_str().unwrap(), seen["holders"][0]["client"].as_str().unwrap());
    let revoked = place.output(&["revoke", "--yes", "--json", "--id", id, "users/alice"]);
    assert_eq!(json(&revoked.stdout)["revoked"], 1, "{revoked:?}");
    let is_first = client.ends_with(&format!("/{}", one.id()));
    let (lost, kept) = if is_first { (&mut one, &mut other) } else { (&mut other, &mut one) };
    assert_eq!(lost.wait().unwrap().code(), Some(73));
    assert!(kept.try_wait().unwrap().is_none());
    place.make("go");
    assert_eq!(kept.wait().unwrap().code(), Some(0));
    let none = place.output(&["revoke", "--yes", "users/alice"]);
    assert!(none.stdout.contains("from 0 holders"), "{none:?}");
}

/// Who has come to hold it since the question was never shown.
#[test]
fn a_lock_is_taken_from_those_who_were_shown_after_a_question() {
    let place = Place::new();
    let shown = hold(&place, "users/alice", "shown");
    let mut asks = Terminal::start(&place, &["revoke", "users/alice"]);
    asks.wait_for("Take it away from 1 holder? [y/N]");
    place.make("go");
    assert_eq!(shown.ended().code, Some(0));
    std::fs::remove_file(place.path().join("go")).unwrap();
    let later = hold(&place, "users/alice", "later");
    asks.press("y\n");
    asks.wait_for("revoked from 0 holders");
    assert_eq!(asks.ended().code, Some(0));

    let mut declines = Terminal::start(&place, &["revoke", "users/alice"]);
    declines.wait_for("[y/N]");
    declines.press("n\n");
    assert_eq!(declines.ended().code, Some(1));
    let mut agrees = Terminal::start(&place, &["revoke", "users/alice"]);
    agrees.wait_for("[y/N]");
    agrees.press("y\n");
    agrees.wait_for("revoked from 1 holder");
    assert_eq!((agrees.ended().code, later.ended().code), (Some(0), Some(73)));
}

#[test]
fn the_doctor_says_what_the_store_promises() {
    let place = Place::new();
    let well = place.output(&["doctor"]);
    assert_eq!(well.code, Some(0), "{well:?}");
    for part in [
        "named by the variable YLOCK_STORE",
        "engine: file",
        "promises: a fencing token",
        "acquire and release",
    ] {
        assert!(well.stdout.contains(part), "{part}: {well:?}");
    }
    let found = json(&place.output(&["doctor", "--json"]).stdout);
    assert_eq!(found["well"], true, "{found}");
    let ill = place.output(&["--store", "file:///no/such/place/at/all", "doctor"]);
    assert!(
        ill.code == Some(64) && ill.stdout.contains("WRONG") && ill.stdout.contains("/no/such/place"),
        "{ill:?}"
    );
}

#[test]
fn a_reader_of_the_output_that_has_gone_is_no_panic() {
    let place = Place::new();
    let mut watching = place
        .ylock(&["watch", "--every", "10ms", "users/alice"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(watching.stdout.take());
    let holds = hold(&place, "users/alice", "held");
    place.make("go");
    holds.send(Signal::CONT);
    assert_eq!(holds.ended().code, Some(0));
    let output = watching.wait_with_output().unwrap();
    assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"), "{output:?}");
}
