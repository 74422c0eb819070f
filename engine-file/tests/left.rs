//! What clients leave behind, and for how long: files of locks that are not in use, and contenders of clients that are gone.
#![cfg(target_os = "linux")]

mod folder;

use std::fs::File;
use std::time::Duration;

use folder::Folder;
use futures_util::poll;
use rustix::fs::{FlockOperation, flock};
use tokio::time::Instant;
use ylock_core::engine::{AcquisitionId, Engine, Patience, Release, Request};
use ylock_core::{ClientName, ErrorKind, Key, Mode, Owner};
use ylock_engine_file::FileEngine;
use ylock_testkit::{eventually, within};

const SOON: Duration = Duration::from_secs(5);
const LONG: Duration = Duration::from_secs(60);

fn key(name: &str) -> Key {
    Key::new("users", name).unwrap()
}

fn request(engine: &FileEngine, name: &str) -> Request {
    let id = AcquisitionId::new(&*engine.environment());
    Request::new(key(name), id, Mode::Write, Owner::new(), ClientName::default(), LONG)
}

async fn acquire_and_release(engine: &FileEngine, name: &str) {
    let held = request(engine, name);
    engine.acquire(&held).await.unwrap().unwrap();
    engine.release(&key(name), held.id, None).await.unwrap();
}

/// Locks the file of a key, as a process that is in the middle of a change.
fn locked(folder: &Folder, name: &str) -> File {
    let file = File::open(folder.path().join(format!("locks/users={name}"))).unwrap();
    flock(&file, FlockOperation::LockExclusive).unwrap();
    file
}

#[tokio::test]
async fn a_file_stays_for_a_moment_after_its_last_use() {
    let folder = Folder::new();
    let client = folder.client().await;
    acquire_and_release(&client, "alice").await;
    assert_eq!(folder.locks(), ["users=alice"]);
    eventually(SOON, "it is removed", async || folder.locks().is_empty()).await;
    acquire_and_release(&client, "bob").await;
    client.close().await.unwrap();
    assert!(folder.locks().is_empty(), "a client that is closed leaves nothing");
}

/// `systemd-tmpfiles` passes over a folder that it cannot lock. One of `runs` is empty most of the time, and would be removed.
#[tokio::test]
async fn a_cleaner_of_old_files_does_not_get_the_folders_of_a_client_that_lives() {
    let folder = Folder::new();
    let client = folder.client().await;
    let locks = |inner: &str| {
        let cleaner = File::open(folder.path().join(inner)).unwrap();
        flock(&cleaner, FlockOperation::NonBlockingLockExclusive).is_ok()
    };
    assert!(!["", "locks", "runs", "clients"].into_iter().any(locks));
    client.close().await.unwrap();
    drop(client);
    eventually(SOON, "it is gone", async || locks("runs")).await;
}

/// The client has a background task, which has nothing to wake it but the end of the client.
#[tokio::test]
async fn a_client_that_is_dropped_is_gone_at_once() {
    let folder = Folder::new();
    let (goes, stays) = (folder.client().await, folder.client().await);
    acquire_and_release(&goes, "bob").await;
    eventually(SOON, "its background task has removed the file", async || folder.locks().is_empty()).await;
    goes.acquire(&request(&goes, "alice")).await.unwrap().unwrap();
    let waits = request(&stays, "alice");
    let mut waiting = stays.acquire(&waits);
    for _ in 0..3 {
        assert!(poll!(waiting.as_mut()).is_pending());
        // Its client comes to watch the other one: with the pipe open, so that this one is not told by that.
        tokio::task::yield_now().await;
    }
    drop(goes);
    within(SOON, "less than a sixth of the lease", waiting).await.unwrap().unwrap();
}

/// As long as one of its contenders is there, other clients must be able to tell that it has ended.
#[tokio::test]
async fn the_pipe_of_a_dead_client_stays_until_all_that_it_has_left_is_gone() {
    let folder = Folder::new();
    let stays = folder.client().await;
    let before = folder.clients();
    let dies = folder.client().await;
    for name in ["alice", "bob"] {
        dies.acquire(&request(&dies, name)).await.unwrap().unwrap();
    }
    let pipe = folder.clients().into_iter().find(|pipe| !before.contains(pipe)).unwrap();
    drop(dies);
    let file = locked(&folder, "alice");
    // Each client that comes clears away what dead ones have left. One is not enough: the background
    // task of the client that is dropped may still have it, for a moment.
    eventually(SOON, "what is not locked is cleared", async || {
        folder.client().await.close().await.unwrap();
        !folder.locks().contains(&"users=bob".to_owned())
    })
    .await;
    assert!(folder.clients().contains(&pipe), "one of its locks is still there");
    flock(&file, FlockOperation::Unlock).unwrap();
    let tries = request(&stays, "alice").with_patience(Patience::Try);
    assert!(stays.acquire(&tries).await.unwrap().is_some());
}

#[tokio::test]
async fn a_change_waits_a_moment_for_another_process_and_no_longer() {
    let folder = Folder::new();
    let client = folder.client().await;
    let held = request(&client, "alice");
    client.acquire(&held).await.unwrap().unwrap();
    let file = locked(&folder, "alice");
    let begun = Instant::now();
    let error = within(SOON, "it ends", client.release(&key("alice"), held.id, None)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(begun.elapsed() >= Duration::from_millis(30), "the request timeout of the engine");
    flock(&file, FlockOperation::Unlock).unwrap();
    let released = client.release(&key("alice"), held.id, None).await;
    assert_eq!(released.unwrap(), Release::Released);
}
