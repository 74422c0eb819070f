//! A process that may make no large files (`ulimit -f`): the system would end it for trying.

use std::os::fd::AsRawFd;
use std::path::Path;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
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

/// Leaves so many descriptors to this process.
fn leave_descriptors(count: usize) {
    // Those that it would get, and the first one that it is not to get. Numbers below may be free.
    let next: Vec<_> = (0..=count).map(|_| std::fs::File::open("/dev/null").unwrap()).collect();
    let first = next.last().expect("one at least").as_raw_fd();
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: Some(first.try_into().unwrap()), maximum }).unwrap();
}

fn leave_all_descriptors() {
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
}

/// Connects with ever more descriptors, until it finds that a client lives. Says whether the lock of that one is there then.
async fn connect_with_few_descriptors(folder: &Path) {
    let options = FileOptions::new(folder);
    for count in 0..100 {
        leave_descriptors(count);
        // It waits when it finds a client that lives.
        let connected = futures_util::poll!(Box::pin(FileEngine::connect(&options)));
        leave_all_descriptors();
        if !folder.join("locks/users=alice").exists() {
            return ChildProcess::say(&format!("found no lock with {count} descriptors"));
        }
        if connected.is_pending() {
            return ChildProcess::say(&format!("found the lock with {count} descriptors"));
        }
    }
}

/// Without a descriptor it cannot see whether the others live: that they do not is then not known.
#[tokio::test]
async fn a_process_without_descriptors_takes_no_client_for_dead() {
    const TEST: &str = "limited::a_process_without_descriptors_takes_no_client_for_dead";
    if let Some(told) = ChildProcess::told() {
        return connect_with_few_descriptors(Path::new(told.trim())).await;
    }
    let folder = Folder::new();
    let ylock = client(folder.path(), LEASE).await;
    let _held = ylock.locks("users").write("alice").await.unwrap();
    // So that the other one is the first client of a new one.
    std::fs::remove_file(folder.path().join("layout")).unwrap();
    let said = start(TEST, &folder, "").says("found").await;
    assert!(said.starts_with("the lock"), "{said}");
}

/// The file of a long name is in a folder of its own.
#[tokio::test]
async fn more_long_names_than_descriptors_are_all_found() {
    const TEST: &str = "limited::more_long_names_than_descriptors_are_all_found";
    const NAMES: usize = 40;
    if let Some(told) = ChildProcess::told() {
        let engine = FileEngine::connect(&FileOptions::new(told.trim())).await.unwrap();
        for number in 0..NAMES {
            let key = Key::new("users", format!("{number}{}", "long".repeat(100))).unwrap();
            let id = AcquisitionId::new(&*engine.environment());
            let request = Request::new(key, id, Mode::Write, Owner::new(), ClientName::default(), LEASE);
            engine.acquire(&request).await.unwrap().expect("free");
        }
        leave_descriptors(NAMES / 2);
        let found = engine.keys(None, None).await.map(|page| page.keys.len());
        leave_all_descriptors();
        return ChildProcess::say(&format!("found {found:?}"));
    }
    let said = start(TEST, &Folder::new(), "").says("found").await;
    assert_eq!(said, format!("Ok({NAMES})"));
}
