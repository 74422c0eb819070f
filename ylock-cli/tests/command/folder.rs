//! A folder of locks with which something is wrong.

use std::fs;

use serde_json::Value;

use crate::support::{Place, Running, eventually};
use crate::terminal::Terminal;

fn hold(place: &Place, lock: &str, file: &str) -> Running {
    let running = place.start(&["run", lock, "--", "sh", "-c", &place.until(file, "go")]);
    place.wait_for(file);
    running
}

/// Its names are those of another folder from then on.
#[test]
fn a_folder_that_is_removed_and_made_again_is_watched_on() {
    let place = Place::new();
    let first = hold(&place, "users/alice", "first");
    let mut watch = place.start(&["watch", "--every", "20ms", "users/alice"]);
    let mut top = Terminal::start(&place, &["top", "--every", "100ms"]);
    let mut shown = String::new();
    eventually("the first holder", || {
        shown.push_str(&watch.said());
        shown.contains("write by")
    });
    top.wait_for("1 lock");
    fs::remove_dir_all(place.path().join("locks")).unwrap();
    // It has lost its lock, and its command is ended.
    assert_eq!(first.ended().code, Some(73));
    shown.clear();
    let second = hold(&place, "users/alice", "second");
    eventually("the second holder", || {
        shown.push_str(&watch.said());
        shown.contains("write by")
    });
    let said = watch.complained();
    assert!(said.contains("was removed, moved or mounted over"), "{said}");
    top.wait_until("the second holder", |text| text.contains("1 lock") && text.contains("users/alice"));
    top.press("q");
    assert_eq!(top.ended().code, Some(0));
    place.make("go");
    assert_eq!(second.ended().code, Some(0));
}

#[test]
fn a_lock_that_is_damaged_is_listed_among_the_others() {
    let place = Place::new();
    let holds =
        ["users/alice", "users/bob", "users/carol"].map(|lock| hold(&place, lock, &lock.replace('/', "-")));
    let files = fs::read_dir(place.path().join("locks/locks")).unwrap();
    let bob =
        files.map(|file| file.unwrap().path()).find(|path| path.to_string_lossy().contains("bob")).unwrap();
    let good = fs::read(&bob).unwrap();
    fs::write(&bob, vec![b'x'; 4096]).unwrap();
    let listed = place.output(&["list", "users"]);
    let mut lines: Vec<_> = listed.stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!((listed.code, lines.len()), (Some(70), 3), "{listed:?}");
    for (line, begin) in
        lines.iter().zip(["users/alice: write by ", "users/bob: DAMAGED: ", "users/carol: write by "])
    {
        assert!(line.starts_with(begin), "{line}");
    }
    assert!(listed.stderr.contains("1 of the locks is damaged"), "{listed:?}");
    let as_json = place.output(&["list", "--json"]).stdout;
    let damaged = as_json.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let damaged: Vec<_> = damaged.filter(|lock| lock["damaged"].is_string()).collect();
    assert!(damaged.len() == 1 && damaged[0]["name"] == "bob", "{damaged:?}");

    let mut top = Terminal::start(&place, &["top", "--every", "100ms", "users"]);
    top.wait_until("the damaged one", |text| text.contains("3 locks") && text.contains("DAMAGED: "));
    top.press("/bob\r\r");
    top.wait_until("it alone", |text| text.contains("users/bob\n  DAMAGED: "));
    top.press("q");
    assert_eq!(top.ended().code, Some(0));
    fs::write(&bob, good).unwrap();
    place.make("go");
    holds.into_iter().for_each(|running| drop(running.ended()));
}
