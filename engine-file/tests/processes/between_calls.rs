//! A process that is killed, or stopped, between any two calls of the system by which it changes a lock.

use std::path::Path;

use ylock_core::engine::{AcquisitionId, Engine, Request};
use ylock_core::{ClientName, ErrorKind, Guard, Key, Mode, Owner, Ylock};
use ylock_engine_file::{FileEngine, FileOptions, stop_at};
use ylock_testkit::ChildProcess;

use super::{Folder, LEASE, client, start, told, until, waiters, within};

/// More than there are.
const POINTS: u64 = 100;

/// The other process: joins the queue behind this test's guard or enters at once, and leaves; it stops on its way.
async fn enter_and_leave(ylock: &Ylock, number: u64, ends: bool) {
    let users = ylock.locks("users");
    stop_at(number, ends);
    let guard = users.write("alice").await.unwrap();
    ChildProcess::say(&format!("holds {}", guard.token().unwrap()));
    drop(guard);
    ChildProcess::say("left");
}

/// The largest token that the process has told, and whether it has come to its end.
fn told_by(said: &[String]) -> (i64, bool) {
    let tokens =
        said.iter().filter_map(|said| said.strip_prefix("holds ")).map(|token| token.parse().unwrap());
    (tokens.max().unwrap_or(0), said.iter().any(|said| said == "left"))
}

fn token(guard: &Guard) -> i64 {
    guard.token().unwrap().get()
}

#[tokio::test]
async fn what_a_killed_process_has_begun_is_done_or_not_and_blocks_none() {
    const TEST: &str = "between_calls::what_a_killed_process_has_begun_is_done_or_not_and_blocks_none";
    if let Some((number, ylock)) = told(LEASE).await {
        return enter_and_leave(&ylock, number.parse().unwrap(), true).await;
    }
    let folder = Folder::new();
    let ylock = client(folder.path(), LEASE).await;
    let mut highest = 0;
    for number in 1..POINTS {
        let said = start(TEST, &folder, &number.to_string()).says_until_it_ends().await;
        let (told, has_left) = told_by(&said);
        highest = highest.max(told);
        let guard = within("the next one gets in", ylock.locks("users").write("alice")).await.unwrap();
        assert!(token(&guard) > highest, "point {number}: {} is not above {highest}", token(&guard));
        highest = token(&guard);
        drop(guard);
        if has_left {
            assert!(number > 8, "only {number} points");
            return;
        }
    }
    panic!("more than {POINTS} points");
}

#[tokio::test]
async fn a_process_that_stops_in_the_middle_stops_one_lock_and_enters_no_second_time() {
    const TEST: &str =
        "between_calls::a_process_that_stops_in_the_middle_stops_one_lock_and_enters_no_second_time";
    if let Some((number, ylock)) = told(LEASE).await {
        return enter_and_leave(&ylock, number.parse().unwrap(), false).await;
    }
    let folder = Folder::new();
    let ylock = client(folder.path(), LEASE).await;
    let users = ylock.locks("users");
    let mut has_blocked = 0;
    for number in 1..POINTS {
        let mut other = start(TEST, &folder, &number.to_string());
        let has_stopped = other.has_stopped().await;
        // Other locks go on.
        assert!(users.write("bob").now().await.unwrap().is_some(), "point {number}");
        let guard = match within("an answer", users.write("alice").now()).await {
            Ok(guard) => guard,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Unavailable, "point {number}");
                has_blocked += 1;
                None
            }
        };
        let said_before = other.has_said();
        if has_stopped {
            other.go_on();
        }
        if let Some(guard) = guard {
            // The other one has left, or has to wait for this one.
            let has_waited = !said_before.iter().any(|said| said.starts_with("holds"));
            if has_stopped && has_waited {
                within("it waits", async {
                    while waiters(&ylock).await == 0 {
                        assert_eq!(other.has_said(), [""; 0], "point {number}: it holds beside this one");
                        tokio::task::yield_now().await;
                    }
                })
                .await;
            }
            drop(guard);
        }
        let said = [said_before, other.says_until_it_ends().await].concat();
        assert!(told_by(&said).1, "point {number}: {said:?}");
        if !has_stopped {
            assert!(number > 8 && has_blocked > 4, "{has_blocked} of {number} points");
            return;
        }
    }
    panic!("more than {POINTS} points");
}

#[tokio::test]
async fn a_file_that_is_removed_before_it_is_locked_is_not_the_locks_file_any_more() {
    const TEST: &str =
        "between_calls::a_file_that_is_removed_before_it_is_locked_is_not_the_locks_file_any_more";
    removed_before_it_is_locked(TEST, |_| {}).await;
}

/// As by a backup that links files instead of copying them: `cp --archive --link`, `rsnapshot`.
#[tokio::test]
async fn a_file_that_has_another_name_when_its_own_is_removed_is_not_the_locks_file_any_more() {
    const TEST: &str =
        "between_calls::a_file_that_has_another_name_when_its_own_is_removed_is_not_the_locks_file_any_more";
    removed_before_it_is_locked(TEST, |file| {
        let backup = file.parent().and_then(Path::parent).expect("the folder").join("backup");
        let _ = std::fs::remove_file(&backup);
        // None is there at the first points.
        let _ = std::fs::hard_link(file, backup);
    })
    .await;
}

/// The other process has opened the lock's file when that is removed, and another one made. `before` is done with the file before.
async fn removed_before_it_is_locked(test: &str, before: impl Fn(&Path)) {
    if let Some((number, ylock)) = told(LEASE).await {
        return enter_and_leave(&ylock, number.parse().unwrap(), false).await;
    }
    let folder = Folder::new();
    let ylock = client(folder.path(), LEASE).await;
    let file = folder.path().join("locks/users=alice");
    let mut has_waited = 0;
    for number in 1..POINTS {
        // Leaves the file for a moment.
        let last = client(folder.path(), LEASE).await;
        drop(last.locks("users").write("alice").await.unwrap());
        let mut other = start(test, &folder, &number.to_string());
        if !other.has_stopped().await {
            assert!(number > 8 && has_waited > 0, "{has_waited} of {number} points");
            return;
        }
        before(&file);
        // Removes it, unless the other process has it locked.
        last.close().await;
        if let (false, Ok(Some(guard))) = (file.exists(), ylock.locks("users").write("alice").now().await) {
            let before = other.has_said();
            other.go_on();
            if before.is_empty() {
                until("it waits", async || waiters(&ylock).await == 1).await;
                assert_eq!(other.has_said(), [""; 0], "point {number}: it holds beside this one");
                has_waited += 1;
            }
            drop(guard);
        } else {
            other.go_on();
        }
        other.says_until_it_ends().await;
    }
    panic!("more than {POINTS} points");
}

/// The other process tries to write where readers are inside: it is never in the way of another one that reads.
#[tokio::test]
async fn a_try_that_fails_keeps_no_other_client_out() {
    const TEST: &str = "between_calls::a_try_that_fails_keeps_no_other_client_out";
    if let Some((number, ylock)) = told(LEASE).await {
        stop_at(number.parse().unwrap(), false);
        let refused = ylock.locks("users").write("alice").now().await.unwrap().is_none();
        return ChildProcess::say(if refused { "left" } else { "holds 0" });
    }
    let folder = Folder::new();
    let (ylock, another) = (client(folder.path(), LEASE).await, client(folder.path(), LEASE).await);
    let _reads = ylock.locks("users").read("alice").await.unwrap();
    for number in 1..POINTS {
        let mut other = start(TEST, &folder, &number.to_string());
        let has_stopped = other.has_stopped().await;
        match another.locks("users").read("alice").now().await {
            Ok(reads) => assert!(reads.is_some(), "point {number}: refused though only readers are inside"),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable, "point {number}"),
        }
        if !has_stopped {
            assert!(number > 4, "only {number} points");
            return;
        }
        other.go_on();
        let said = other.says_until_it_ends().await;
        assert_eq!(said, ["left"], "point {number}");
    }
    panic!("more than {POINTS} points");
}

/// The file of a long name is in folders, which go with the last file in them: also those that another process has made for its own just now.
#[tokio::test]
async fn folders_that_are_removed_before_the_file_is_made_are_made_again() {
    const TEST: &str = "between_calls::folders_that_are_removed_before_the_file_is_made_are_made_again";
    if let Some(told) = ChildProcess::told() {
        let (number, folder) = told.split_once('\n').unwrap();
        return ask_once(Path::new(folder), number.parse().unwrap()).await;
    }
    let folder = Folder::new();
    // So that the other one is not the first client, which clears the folder.
    let _ylock = client(folder.path(), LEASE).await;
    let mut has_removed = Vec::new();
    for number in 1..POINTS {
        let mut other = start(TEST, &folder, &number.to_string());
        let has_stopped = other.has_stopped().await;
        has_removed.push(remove_empty(&folder.path().join("locks")));
        if has_stopped {
            other.go_on();
        }
        let said = other.says_until_it_ends().await;
        assert!(told_by(&said).1, "point {number}: {said:?}");
        if !has_stopped {
            assert!(has_removed.contains(&1) && has_removed.contains(&2), "{has_removed:?}");
            return;
        }
    }
    panic!("more than {POINTS} points");
}

/// The other process: asks for the lock of a long name once, below the keeper, which would ask again after an error.
async fn ask_once(folder: &Path, number: u64) {
    let engine = FileEngine::connect(&FileOptions::new(folder)).await.unwrap();
    let (key, id) =
        (Key::new("users", "long".repeat(200)).unwrap(), AcquisitionId::new(&*engine.environment()));
    let request = Request::new(key.clone(), id, Mode::Write, Owner::new(), ClientName::default(), LEASE);
    stop_at(number, false);
    assert!(engine.acquire(&request).await.unwrap().is_some());
    engine.release(&key, id, None).await.unwrap();
    ChildProcess::say("left");
}

/// Removes the folders that have nothing in them but such folders. Returns how many.
fn remove_empty(folder: &Path) -> usize {
    let inner = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let inner = inner.filter(|path| path.is_dir());
    inner.map(|path| remove_empty(&path) + usize::from(std::fs::remove_dir(&path).is_ok())).sum()
}
