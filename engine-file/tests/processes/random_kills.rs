//! A process that takes a lock and gives it back, again and again, is killed at a random moment.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rand::RngExt;
use ylock_core::Ylock;
use ylock_testkit::ChildProcess;

use super::{Folder, LEASE, client, start, within};

const TEST: &str = "random_kills::a_process_may_be_killed_at_any_moment_and_leaves_nothing";
/// Where the other process notes the tokens that it gets.
const NOTE: &str = "token";
/// A client of the other process is closed after so many turns, and another one connected.
const TURNS: usize = 10;

/// The other process.
async fn take_and_leave(folder: &Path) -> ! {
    let note = File::options().create(true).truncate(false).write(true).open(note_of(folder)).unwrap();
    ChildProcess::say("begins");
    loop {
        let ylock = client(folder, LEASE).await;
        for _ in 0..TURNS {
            let guard = ylock.locks("users").write("alice").await.unwrap();
            note.write_all_at(&guard.token().unwrap().get().to_be_bytes(), 0).unwrap();
        }
        ylock.close().await;
    }
}

/// What this process does meanwhile.
async fn compete(ylock: &Ylock, how: u32) {
    let users = ylock.locks("users");
    match how {
        // Nothing.
        0 => std::future::pending().await,
        1 => {
            let _guard = users.write("alice").await.unwrap();
            std::future::pending().await
        }
        _ => loop {
            drop(users.write("alice").await.unwrap());
            tokio::task::yield_now().await;
        },
    }
}

#[tokio::test]
async fn a_process_may_be_killed_at_any_moment_and_leaves_nothing() {
    if let Some(told) = ChildProcess::told() {
        take_and_leave(Path::new(told.split_once('\n').unwrap().1)).await;
    }
    let kills = ylock_testkit::short_or_long(100, 10_000);
    let (folder, mut chance) = (Folder::new(), rand::rng());
    let ylock = client(folder.path(), LEASE).await;
    let (mut highest, mut longest) = (0, Duration::ZERO);
    for number in 0..kills {
        let mut other = start(TEST, &folder, "");
        other.says("begins").await;
        let after = Duration::from_micros(chance.random_range(0..5000));
        // A moment that nothing else decides.
        let _ = tokio::time::timeout(after, compete(&ylock, chance.random_range(0..3))).await;
        drop(other);
        let killed = Instant::now();
        let guard = within("it gets in", ylock.locks("users").write("alice")).await.unwrap();
        longest = longest.max(killed.elapsed());
        highest = highest.max(noted(folder.path()));
        let token = guard.token().unwrap().get();
        assert!(token > highest, "kill {number}: {token} is not above {highest}");
        highest = token;
    }
    println!("{kills} processes killed, the next one was in after {longest:?} at most");
    // Whoever comes clears away what the dead have left; no first client, which would clear all.
    let another = client(folder.path(), LEASE).await;
    assert_eq!(folder.clients().len(), 2, "{:?}", folder.clients());
    ylock.close().await;
    another.close().await;
    assert_eq!((folder.locks(), folder.clients()), (vec![], vec![]));
}

fn note_of(folder: &Path) -> std::path::PathBuf {
    folder.parent().unwrap().join(NOTE)
}

/// Returns the last token that a process has noted; zero if none has come so far.
fn noted(folder: &Path) -> i64 {
    let mut token = [0; 8];
    let read = File::open(note_of(folder)).unwrap().read_at(&mut token, 0).unwrap();
    if read == token.len() { i64::from_be_bytes(token) } else { 0 }
}
