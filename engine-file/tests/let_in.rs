//! Waiters that the client which makes room has let in: told in time, told late, and not told.
#![cfg(target_os = "linux")]

mod folder;

use std::fs::{File, OpenOptions};
use std::future::Future;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::time::Duration;

use folder::Folder;
use futures_util::poll;
use rustix::fs::{FlockOperation, OFlags, flock};
use tokio::runtime::{Builder, Runtime};
use ylock_core::engine::{AcquisitionId, Engine, Grant, Request};
use ylock_core::{ClientName, Fairness, Key, Mode, Owner};
use ylock_engine_file::FileEngine;
use ylock_testkit::{eventually, within};

/// Less than a sixth of a long lease: a waiter that enters within this time has been told, or has noticed a client's end.
const SOON: Duration = Duration::from_secs(5);
const LONG: Duration = Duration::from_secs(60);

fn key() -> Key {
    Key::new("users", "alice").unwrap()
}

fn request(engine: &FileEngine, lease: Duration) -> Request {
    let id = AcquisitionId::new(&*engine.environment());
    Request::new(key(), id, Mode::Write, Owner::new(), ClientName::default(), lease)
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// A holder whose runtime runs, and a client in a runtime that stands still unless it is driven, so that what it is told stays in its pipe.
struct Case {
    running: Runtime,
    standing: Runtime,
    folder: Folder,
    waits: FileEngine,
    pipe_of_waits: PathBuf,
    holds: FileEngine,
    held: Request,
}

impl Case {
    fn new() -> Self {
        let (running, standing, folder) = (runtime(), runtime(), Folder::new());
        let waits = standing.block_on(folder.client_that_stands());
        let pipe_of_waits = folder.path().join("clients").join(folder.clients().remove(0));
        let holds = running.block_on(folder.client());
        let held = request(&holds, LONG);
        running.block_on(holds.acquire(&held)).unwrap().unwrap();
        Self { running, standing, folder, waits, pipe_of_waits, holds, held }
    }

    fn release(&self) {
        self.running.block_on(self.holds.release(&key(), self.held.id, None)).unwrap();
    }

    /// Takes the one message that is in the waiter's pipe: for which acquisition it is, and the rest of it.
    fn told(&self) -> (AcquisitionId, [u8; 16]) {
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
        let (mut pipe, mut bytes) = (options.open(&self.pipe_of_waits).unwrap(), [0; 64]);
        assert_eq!(pipe.read(&mut bytes).unwrap(), 32);
        let (id, rest) = (bytes[..16].try_into().unwrap(), bytes[16..32].try_into().unwrap());
        (AcquisitionId::from_u128(u128::from_be_bytes(id)), rest)
    }

    /// Drives the runtime of the waiter until it waits, and its client reads its pipe.
    fn begins_to_wait<T>(&self, mut waiting: Pin<&mut impl Future<Output = T>>) {
        self.standing.block_on(async {
            for _ in 0..2 {
                assert!(poll!(waiting.as_mut()).is_pending());
                // What the client does by itself begins with a look of all its waiters.
                tokio::task::yield_now().await;
            }
            assert!(poll!(waiting.as_mut()).is_pending());
        });
    }

    /// Drives the runtime of the waiter until it is let in.
    fn granted(&self, waiting: impl Future<Output = ylock_core::Result<Option<Grant>>>) -> Grant {
        self.standing.block_on(within(SOON, "it is let in", waiting)).unwrap().unwrap()
    }
}

#[test]
fn a_waiter_that_is_told_of_its_turn_enters_without_a_look() {
    let case = Case::new();
    let waiter = request(&case.waits, LONG);
    let mut waiting = pin!(case.waits.acquire(&waiter));
    case.begins_to_wait(waiting.as_mut());
    case.release();
    // As another process that is in the middle of a change: a look would wait for it.
    let file = File::open(case.folder.path().join("locks/users=alice")).unwrap();
    flock(&file, FlockOperation::LockExclusive).unwrap();
    let grant = case.granted(waiting);
    assert!(grant.waited && !grant.contended);
    flock(&file, FlockOperation::Unlock).unwrap();
    let shown = case.running.block_on(case.holds.inspect(&key())).unwrap();
    assert_eq!(shown.holders.iter().map(|holder| holder.id).collect::<Vec<_>>(), [waiter.id]);
    assert_eq!(shown.holders[0].token, grant.token.map(Into::into));
}

/// Not from when it hears of it: others count from the moment that is stored.
#[test]
fn the_lease_counts_from_when_the_waiter_was_let_in() {
    let case = Case::new();
    let waiter = request(&case.waits, LONG);
    let mut waiting = pin!(case.waits.acquire(&waiter));
    case.begins_to_wait(waiting.as_mut());
    case.release();
    let let_in = case.holds.environment().now();
    while case.holds.environment().now() <= let_in {
        std::hint::spin_loop();
    }
    assert!(case.granted(waiting).sent <= let_in);
}

/// The waiter hears that it was let in when its lease is over and another one is inside.
#[test]
fn a_waiter_that_is_told_late_does_not_count_as_inside() {
    let case = Case::new();
    let waiter = request(&case.waits, Duration::from_millis(600));
    let mut waiting = pin!(case.waits.acquire(&waiter));
    case.begins_to_wait(waiting.as_mut());
    let next = request(&case.holds, LONG);
    let mut next_waiting = pin!(case.holds.acquire(&next));
    case.running.block_on(async { assert!(poll!(next_waiting.as_mut()).is_pending()) });
    case.release();
    let inside = case.running.block_on(within(SOON, "after a lease", next_waiting)).unwrap().unwrap();
    case.standing.block_on(async {
        let queues_again = eventually(SOON, "the waiter queues again", async || {
            let seen = case.waits.inspect(&key()).await.unwrap();
            seen.queue.iter().any(|one| one.id == waiter.id)
        });
        tokio::select! {
            granted = waiting.as_mut() => panic!("the other one is inside: {granted:?}"),
            () = queues_again => {}
        }
    });
    case.running.block_on(case.holds.release(&key(), next.id, None)).unwrap();
    assert!(case.granted(waiting).token > inside.token);
}

#[test]
fn a_waiter_that_is_let_in_and_not_told_finds_out() {
    let case = Case::new();
    let waiter = request(&case.waits, Duration::from_secs(3));
    let mut waiting = pin!(case.waits.acquire(&waiter));
    case.begins_to_wait(waiting.as_mut());
    case.release();
    let mut options = OpenOptions::new();
    let lost =
        options.read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(&case.pipe_of_waits);
    assert_eq!(lost.unwrap().read(&mut [0; 4096]).unwrap(), 32);
    assert!(case.granted(waiting).waited);
}

/// Of two whose turn it is and that conflict, one is let in, and the other one is to look.
#[test]
fn one_that_cannot_enter_any_more_is_told_to_look() {
    let case = Case::new();
    let unfair = request(&case.waits, LONG).with_fairness(Fairness::Unfair);
    let first = request(&case.holds, LONG);
    let mut first_waits = pin!(case.holds.acquire(&first));
    case.running.block_on(async { assert!(poll!(first_waits.as_mut()).is_pending()) });
    assert!(case.waits.at_once().unwrap().acquire(&unfair).is_none(), "it waits");
    case.release();
    let granted = case.running.block_on(within(SOON, "it is told", first_waits));
    assert!(granted.unwrap().unwrap().contended, "the other one waits");
    let (told, rest) = case.told();
    assert_eq!(told, unfair.id);
    assert_eq!(rest, [0; 16], "not that it is inside");
}

/// An unfair waiter waits for holders only: it is to watch the one that was let in before it.
#[tokio::test]
async fn an_unfair_waiter_notices_the_end_of_one_that_was_let_in_before_it() {
    let folder = Folder::new();
    let (holds, first, unfair) = (folder.client().await, folder.client().await, folder.client().await);
    let (held, waiter) = (request(&holds, LONG), request(&first, LONG));
    let other = request(&unfair, LONG).with_fairness(Fairness::Unfair);
    holds.acquire(&held).await.unwrap().unwrap();
    let mut first_waits = first.acquire(&waiter);
    assert!(poll!(first_waits.as_mut()).is_pending());
    let mut unfair_waits = pin!(unfair.acquire(&other));
    assert!(poll!(unfair_waits.as_mut()).is_pending());
    holds.release(&key(), held.id, None).await.unwrap();
    within(SOON, "it is told", first_waits).await.unwrap().unwrap();
    drop(first);
    within(SOON, "it watches the one inside", unfair_waits).await.unwrap().unwrap();
}
