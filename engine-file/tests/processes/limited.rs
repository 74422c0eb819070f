//! A process that may make no large files (`ulimit -f`): the system would end it for trying.

use rustix::process::{Resource, Rlimit, setrlimit};
use ylock_core::engine::{AcquisitionId, Engine, Request};
use ylock_core::{ClientName, Key, Mode, Owner, Ylock};
use ylock_engine_file::{FileEngine, FileOptions};
use ylock_testkit::ChildProcess;

use super::{Folder, LEASE, client, start};

/// So many bytes has a file of a lock for which few wait.
const SMALL: u64 = 4096;

/// Queues one waiter after another until there is no room for more, and returns how many found it.
async fn fill(folder: &str, most: u64) -> usize {
    setrlimit(Resource::Fsize, Rlimit { current: Some(most), maximum: None }).unwrap();
    let engine = FileEngine::connect(&FileOptions::new(folder)).await.unwrap();
    let key = Key::new("users", "alice").unwrap();
    let mut waiting = Vec::new();
    loop {
        let id = AcquisitionId::new(&*engine.environment());
        waiting.push(Request::new(key.clone(), id, Mode::Write, Owner::new(), ClientName::default(), LEASE));
        let last = waiting.last().expect("pushed");
        // A waiter that is let in or refused would be ready.
        let mut acquires = engine.acquire(last);
        let _ = futures_util::poll!(&mut acquires);
        drop(acquires);
        if engine.inspect(&key).await.unwrap().queue.len() < waiting.len() {
            return waiting.len() - 1;
        }
    }
}

#[tokio::test]
async fn a_process_that_may_make_no_large_files_is_told_instead_of_ended() {
    const TEST: &str = "limited::a_process_that_may_make_no_large_files_is_told_instead_of_ended";
    if let Some(told) = ChildProcess::told() {
        let (most, folder) = told.split_once('\n').unwrap();
        let found = fill(folder, most.parse().unwrap()).await;
        return ChildProcess::say(&format!("room for {found}"));
    }
    let folder = Folder::new();
    let ylock = client(folder.path(), LEASE).await;
    let _held = ylock.locks("users").write("alice").await.unwrap();
    let mut room = Vec::new();
    for most in [SMALL, SMALL * 8] {
        let found: usize = start(TEST, &folder, &most.to_string()).says("room for").await.parse().unwrap();
        room.push(found);
    }
    assert!(room[0] > 3 && room[1] > room[0] * 2, "{room:?}");
}

#[tokio::test]
async fn a_process_that_may_not_make_the_file_of_a_lock_is_refused() {
    const TEST: &str = "limited::a_process_that_may_not_make_the_file_of_a_lock_is_refused";
    if let Some(told) = ChildProcess::told() {
        let folder = told.trim();
        setrlimit(Resource::Fsize, Rlimit { current: Some(SMALL - 1), maximum: None }).unwrap();
        let refused = FileEngine::connect(&FileOptions::new(folder)).await.map(Ylock::new).unwrap_err();
        return ChildProcess::say(&format!("refused {refused}"));
    }
    let said = start(TEST, &Folder::new(), "").says("refused").await;
    assert!(said.contains("ulimit -f"), "{said}");
}
