//! A client that is killed, or stopped, between any two calls of the system by which it connects: as the first one, which clears the folder, and
//! as another one.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::Mode;
use ylock_core::{Period, Ylock};
use ylock_engine_file::options::Access;
use ylock_engine_file::{FileEngine, FileOptions, stop_at};
use ylock_testkit::ChildProcess;

use super::{Folder, LEASE, client, start, until, waiters, within};

/// More than there are.
const POINTS: u64 = 100;

/// What the other process was told: at which point it stops, whether it ends there, and the folder.
fn told() -> Option<(u64, bool, String)> {
    let told = ChildProcess::told()?;
    let (how, folder) = told.split_once('\n').unwrap();
    let (number, ends) = how.split_once(' ').unwrap();
    Some((number.parse().unwrap(), ends == "ends", folder.to_owned()))
}

/// The other process: connects, waits for its turn, and leaves.
async fn connect_and_wait((number, ends, folder): (u64, bool, String)) {
    if number == 0 {
        return hold(&folder).await;
    }
    stop_at(number, ends);
    let ylock = client(Path::new(&folder), LEASE).await;
    // Those points are for connecting alone.
    stop_at(0, false);
    ChildProcess::say("connected");
    drop(ylock.locks("users").write("alice").await.unwrap());
    ylock.close().await;
    ChildProcess::say("left");
}

/// Another process: holds two locks until it is killed.
async fn hold(folder: &str) {
    let ylock = client(Path::new(folder), LEASE).await;
    let users = ylock.locks("users");
    let held = (users.write("alice").await.unwrap(), users.write("bob".repeat(300)).await.unwrap());
    ChildProcess::say(&format!("holds {}", held.0.token().unwrap()));
    std::future::pending().await
}

/// The other client waits, and is told of its turn long before it would look by itself.
async fn is_told(ylock: &Ylock, guard: ylock_core::Guard, mut other: ChildProcess) {
    until("it waits", async || waiters(ylock).await == 1).await;
    drop(guard);
    let said = within("it is told", other.says_until_it_ends()).await;
    assert_eq!(said.last().map(String::as_str), Some("left"));
}

#[tokio::test]
async fn a_client_that_stops_while_it_connects_is_told_of_its_turn_all_the_same() {
    const TEST: &str = "connecting::a_client_that_stops_while_it_connects_is_told_of_its_turn_all_the_same";
    if let Some(told) = told() {
        return connect_and_wait(told).await;
    }
    let folder = Folder::new();
    let ylock = client(folder.path(), LEASE).await;
    for number in 1..POINTS {
        let guard = within("it gets in", ylock.locks("users").write("alice")).await.unwrap();
        let mut other = start(TEST, &folder, &format!("{number} stops"));
        let has_stopped = within("it stops or waits", async {
            tokio::select! {
                stopped = other.has_stopped() => stopped,
                () = until("it waits", async || waiters(&ylock).await == 1) => false,
            }
        });
        if !has_stopped.await {
            assert!(number > 3, "only {number} points");
            return is_told(&ylock, guard, other).await;
        }
        // Clears away what it takes for dead.
        let another = client(folder.path(), LEASE).await;
        other.go_on();
        other.says("connected").await;
        is_told(&ylock, guard, other).await;
        another.close().await;
    }
    panic!("more than {POINTS} points");
}

/// Another client lives, so that no first one clears the folder.
#[tokio::test]
async fn the_next_client_clears_away_what_is_left_of_one_that_was_killed_while_it_connected() {
    const TEST: &str =
        "connecting::the_next_client_clears_away_what_is_left_of_one_that_was_killed_while_it_connected";
    if let Some(told) = told() {
        return connect_and_wait(told).await;
    }
    let folder = Folder::new();
    let ylock = client(folder.path(), LEASE).await;
    let mut has_left = 0;
    for number in 1..POINTS {
        let said = start(TEST, &folder, &format!("{number} ends")).says_until_it_ends().await;
        has_left += usize::from(folder.clients().len() > 1);
        let another = client(folder.path(), LEASE).await;
        assert_eq!(folder.clients().len(), 2, "point {number}: {:?}", folder.clients());
        another.close().await;
        if said.last().is_some_and(|said| said == "left") {
            assert!(has_left > 1, "{has_left} of {number} points");
            ylock.close().await;
            return;
        }
    }
    panic!("more than {POINTS} points");
}

/// The other process: uses a folder of a group, with a mask that keeps the group out. It is killed on its way.
async fn use_for_group(number: u64, folder: &str) {
    rustix::process::umask(Mode::from_raw_mode(0o077));
    stop_at(number, true);
    let options = FileOptions::new(folder).with_access(Access::Group);
    let ylock = Ylock::new(FileEngine::connect(&options).await.unwrap());
    let users = ylock.locks("users");
    let _held = (users.write("alice").await.unwrap(), users.write("bob".repeat(300)).await.unwrap());
    let hourly = Period::of(Duration::from_secs(3600));
    ylock.locks("jobs").once_per("report", hourly, async |_| {}).await.unwrap();
    ChildProcess::say("left");
}

fn keeps_the_group_out(path: &Path) -> Option<String> {
    let found = std::fs::symlink_metadata(path).unwrap();
    let (mode, wanted) = (found.permissions().mode() & 0o7777, if found.is_dir() { 0o2770 } else { 0o660 });
    let is_complete = path.extension().is_none_or(|extension| extension != "new");
    (is_complete && mode & wanted != wanted).then(|| format!("{} {mode:o}", path.display()))
}

/// Returns what is in a folder, and in the folders in it.
fn all_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| {
            let inner = if path.is_dir() { all_in(&path) } else { vec![] };
            inner.into_iter().chain([path])
        })
        .collect()
}

/// Otherwise a lock whose file only its maker can open is closed to all others of the group.
#[tokio::test]
async fn a_process_that_is_killed_leaves_nothing_that_the_group_cannot_use() {
    const TEST: &str = "connecting::a_process_that_is_killed_leaves_nothing_that_the_group_cannot_use";
    if let Some((number, _, folder)) = told() {
        return use_for_group(number, &folder).await;
    }
    for number in 1..2 * POINTS {
        let folder = Folder::new();
        let said = start(TEST, &folder, &format!("{number} ends")).says_until_it_ends().await;
        let left = [vec![folder.path().to_owned()], all_in(folder.path())].concat();
        let left = left.iter().filter(|path| path.exists());
        let closed: Vec<_> = left.filter_map(|path| keeps_the_group_out(path)).collect();
        assert!(closed.is_empty(), "point {number}: {closed:?}");
        if said.last().is_some_and(|said| said == "left") {
            assert!(number > 20, "only {number} points");
            return;
        }
    }
    panic!("more than {} points", 2 * POINTS);
}

#[tokio::test]
async fn the_first_client_may_be_killed_at_any_point_of_clearing() {
    const TEST: &str = "connecting::the_first_client_may_be_killed_at_any_point_of_clearing";
    if let Some(told) = told() {
        return connect_and_wait(told).await;
    }
    let folder = Folder::new();
    let mut highest = 0;
    for number in 1..POINTS {
        // Leaves locks of two names, and a pipe.
        let mut left = start(TEST, &folder, "0 stops");
        highest = highest.max(left.says_token("holds").await);
        drop(left);
        let said = start(TEST, &folder, &format!("{number} ends")).says_until_it_ends().await;
        let ylock = client(folder.path(), LEASE).await;
        let guard =
            ylock.locks("users").write("alice").now().await.unwrap().expect("nothing of the others counts");
        assert!(guard.token().unwrap().get() > highest, "point {number}");
        highest = guard.token().unwrap().get();
        drop(guard);
        ylock.close().await;
        drop(ylock);
        assert!(
            folder.locks().is_empty() && folder.clients().is_empty(),
            "{:?} {:?}",
            folder.locks(),
            folder.clients()
        );
        if said.last().is_some_and(|said| said == "left") {
            assert!(number > 10, "only {number} points");
            return;
        }
    }
    panic!("more than {POINTS} points");
}
