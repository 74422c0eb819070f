//! `ylock top`, in a terminal.

use rustix::process::Signal;

use crate::support::{Place, Running, eventually};
use crate::terminal::Terminal;

const ESCAPE: &str = "\u{1b}";
const DOWN: &str = "\u{1b}[B";

/// Three holders, the last one with a waiter.
struct Locks {
    place: Place,
    alice: Running,
    _others: [Running; 3],
}

impl Locks {
    fn new() -> Self {
        let place = Place::new();
        let hold = |name: &str| {
            let running =
                place.start(&["run", &format!("users/{name}"), "--", "sh", "-c", &place.until(name, "go")]);
            place.wait_for(name);
            running
        };
        let [carol, bob, alice] = ["carol", "bob", "alice"].map(hold);
        let waits = place.start(&["run", "users/alice", "--", "true"]);
        let inspected = || place.output(&["inspect", "users/alice"]).stdout;
        eventually("it waits", || inspected().contains("1. waits"));
        Self { place, alice, _others: [carol, bob, waits] }
    }

    fn top(&self, arguments: &[&str]) -> Terminal {
        Terminal::start(&self.place, &[&["top", "--every", "100ms"], arguments].concat())
    }
}

/// Returns the names of the locks in the order in which they are shown.
fn names(screen: &str) -> Vec<&str> {
    let first = |line: &'_ str| line.split(' ').next().unwrap().len();
    screen.lines().filter(|line| line.starts_with("users/")).map(|line| &line[..first(line)]).collect()
}

#[test]
fn the_longest_wait_comes_first_and_then_the_longest_hold() {
    let locks = Locks::new();
    let mut top = locks.top(&[]);
    top.wait_until("the order", |text| names(text) == ["users/alice", "users/carol", "users/bob"]);
    top.wait_until("a wait of a second", |text| {
        let line = text.lines().find(|line| line.starts_with("users/alice"));
        line.is_some_and(|line| !line.ends_with(" 0s"))
    });
    let text = top.text();
    assert!(text.contains("file://") && text.contains("3 locks at ") && text.contains(" ms"), "{text}");
    println!("{text}");
    top.press("q");
    assert_eq!(top.ended().code, Some(0));
}

#[test]
fn a_filter_is_typed_and_a_lock_is_shown_by_itself() {
    let locks = Locks::new();
    let mut top = locks.top(&["users"]);
    top.wait_for("3 locks");
    top.press("/S/bo");
    top.wait_until("one lock", |text| names(text) == ["users/bob"]);
    top.press("x");
    top.wait_until("no lock", |text| names(text).is_empty());
    top.press(ESCAPE);
    top.wait_until("all locks", |text| names(text).len() == 3);
    top.press("\r");
    top.wait_for("1. waits to write by ");
    assert!(top.text().contains("held to write by "));
    top.press(ESCAPE);
    top.wait_until("all locks again", |text| names(text).len() == 3);
    top.press(DOWN);
    top.press("\r");
    top.wait_until("the second one", |text| text.contains("users/carol\n") && text.contains("held to"));
    top.press("\u{3}");
    assert_eq!(top.ended().code, Some(0));
}

#[test]
fn a_lock_is_revoked_after_yes_and_not_after_no() {
    let locks = Locks::new();
    let mut top = locks.top(&[]);
    top.wait_for("3 locks");
    let inspect = || locks.place.output(&["inspect", "--json", "users/alice"]).stdout;
    let before = inspect();
    top.press("r");
    top.wait_for("Revoke users/alice from ");
    top.press("n");
    top.wait_for("nothing was revoked");
    assert_eq!(inspect(), before);
    top.press("r");
    top.wait_for("Revoke users/alice from ");
    top.press("y");
    top.wait_for("users/alice: revoked from 1 holder");
    let ended = locks.alice.ended();
    assert_eq!(ended.code, Some(73), "{ended:?}");
    top.press("q");
    assert_eq!(top.ended().code, Some(0));
}

#[test]
fn it_says_that_there_are_more_and_a_signal_gives_the_terminal_back() {
    let locks = Locks::new();
    let top = locks.top(&["--limit", "2"]);
    top.wait_for("2 locks, and there are more");
    top.send(Signal::TERM);
    assert_eq!(top.ended().code, Some(128 + 15));
}

#[test]
fn without_a_terminal_it_names_the_command_that_needs_none() {
    let ended = Place::new().output(&["top"]);
    assert_eq!(ended.code, Some(64), "{ended:?}");
    assert!(ended.stderr.contains("ylock list"), "{ended:?}");
}
