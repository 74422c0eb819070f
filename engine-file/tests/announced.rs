//! Requests that name a second acquisition, and tries: what becomes of those that have left, and who is told.
#![cfg(target_os = "linux")]

mod folder;

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::pin::pin;
use std::time::Duration;

use folder::Folder;
use futures_util::poll;
use rustix::fs::{FlockOperation, OFlags, flock};
use ylock_core::engine::{AcquisitionId, Engine, Holding, Patience, Renewal, Request};
use ylock_core::{ClientName, Key, Mode, Owner};
use ylock_engine_file::FileEngine;

const BOUND: Duration = Duration::from_secs(30);

fn key() -> Key {
    Key::new("users", "alice").unwrap()
}

fn request(engine: &FileEngine) -> Request {
    let (id, lease) = (AcquisitionId::new(&*engine.environment()), Duration::from_secs(60));
    Request::new(key(), id, Mode::Write, Owner::new(), ClientName::default(), lease)
}

#[tokio::test]
async fn a_waiter_that_was_released_does_not_come_back_by_a_renewal_that_was_under_way() {
    let folder = Folder::new();
    let engine = folder.client().await;
    let (held, next) = (request(&engine), request(&engine));
    let grant = engine.acquire(&held).await.unwrap().unwrap();
    let holdings = [Holding::new(grant, next.clone())];
    // As another process that is in the middle of a change.
    let file = File::open(folder.path().join("locks/users=alice")).unwrap();
    flock(&file, FlockOperation::LockExclusive).unwrap();
    let mut renewing = pin!(engine.renew(&holdings));
    assert!(poll!(renewing.as_mut()).is_pending());
    flock(&file, FlockOperation::Unlock).unwrap();
    engine.release(&key(), next.id, None).await.unwrap();
    let renewed = renewing.await.remove(0).unwrap();
    assert!(matches!(renewed, Renewal::Renewed { .. }), "{renewed:?}");
    assert!(engine.inspect(&key()).await.unwrap().queue.is_empty());
}

/// The client ends between its release and the call that would have let the next one in.
#[tokio::test]
async fn a_request_that_follows_a_release_goes_with_its_client() {
    let folder = Folder::new();
    let (engine, another) = (folder.client().await, folder.client().await);
    let (held, next) = (request(&engine), request(&engine));
    engine.acquire(&held).await.unwrap().unwrap();
    engine.release(&key(), held.id, Some(&next)).await.unwrap();
    let tries = request(&another).with_patience(Patience::Try);
    assert!(another.acquire(&tries).await.unwrap().is_none());
    drop(engine);
    // Its background work, on a thread of its own, may be in the middle of a look.
    ylock_testkit::eventually(BOUND, "it is free", async || another.acquire(&tries).await.unwrap().is_some())
        .await;
}

/// The waiter's client is in a runtime that stands still, so that what it is told stays in its pipe.
#[test]
fn a_waiter_is_told_of_a_release_and_not_of_a_try_that_fails() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (running, standing, folder) = (runtime(), runtime(), Folder::new());
    let waits = standing.block_on(folder.client_that_stands());
    let pipe = folder.clients().remove(0);
    let (holds, tries) = running.block_on(async { (folder.client().await, folder.client().await) });
    let held = request(&holds);
    running.block_on(holds.acquire(&held)).unwrap().unwrap();
    let waiter = request(&waits);
    assert!(waits.at_once().unwrap().acquire(&waiter).is_none(), "it waits");
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    let mut pipe = options.open(folder.path().join("clients").join(pipe)).unwrap();
    let mut told = [0; 32];
    let one = request(&tries).with_patience(Patience::Try);
    assert!(running.block_on(tries.acquire(&one)).unwrap().is_none());
    assert_eq!(pipe.read(&mut told).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    running.block_on(holds.release(&key(), held.id, None)).unwrap();
    pipe.read_exact(&mut told).unwrap();
    assert_eq!(told[..16], waiter.id.as_u128().to_be_bytes());
}

/// The waiter's client is told so much that its pipe is full, so that what comes after that is lost: it looks for all of its waiters then.
#[test]
fn a_waiter_whose_message_found_no_room_looks_all_the_same() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (running, standing, folder) = (runtime(), runtime(), Folder::new());
    let waits = standing.block_on(folder.client_that_stands());
    let pipe = folder.clients().remove(0);
    let holds = running.block_on(folder.client());
    // It would look by itself after ten minutes.
    let (held, waiter) = (request(&holds), request(&waits).with_lease(Duration::from_secs(3600)));
    running.block_on(holds.acquire(&held)).unwrap().unwrap();
    let waits = standing.spawn(async move { waits.acquire(&waiter).await });
    standing.block_on(ylock_testkit::eventually(BOUND, "it waits", async || {
        holds.inspect(&key()).await.unwrap().queue.len() == 1
    }));
    let mut options = OpenOptions::new();
    options.write(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    let mut pipe = options.open(folder.path().join("clients").join(pipe)).unwrap();
    let full = std::iter::repeat_with(|| pipe.write(&[1; 16])).find_map(Result::err).unwrap();
    assert_eq!(full.kind(), std::io::ErrorKind::WouldBlock);
    running.block_on(holds.release(&key(), held.id, None)).unwrap();
    let granted = standing.block_on(ylock_testkit::within(BOUND, "it gets in", waits));
    assert!(granted.unwrap().unwrap().is_some());
}
