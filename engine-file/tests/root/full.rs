//! The file system is full: a clear error, never a grant that is not stored, never a damaged lock.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use ylock_core::engine::{AcquisitionId, Engine, Holding, Patience, Release, Renewal, Request};
use ylock_core::{ClientName, Error, ErrorKind, Key, Mode, Options, Owner, Ylock};
use ylock_engine_file::{FileEngine, FileOptions};

use super::disk::{Disk, names};
use super::within;

const LEASE: Duration = Duration::from_secs(3600);
/// So short that a call may bear an outage of that length.
const SHORT: Duration = Duration::from_millis(500);

async fn connect(disk: &Disk) -> Result<FileEngine, Error> {
    FileEngine::connect(&FileOptions::new(disk.folder())).await
}

async fn client(disk: &Disk, lease: Duration) -> Ylock {
    Ylock::new(connect(disk).await.unwrap()).with_options(Options::default().with_lease(lease))
}

fn request(engine: &FileEngine, name: &str) -> Request {
    let id = AcquisitionId::new(&*engine.environment());
    let key = Key::new("users", name).unwrap();
    Request::new(key, id, Mode::Write, Owner::new(), ClientName::default(), LEASE)
}

fn names_the_disk(error: &Error, file: &str) {
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    let text = error.to_string();
    assert!(text.contains(file) && text.contains("No space left on device"), "{text}");
}

#[tokio::test]
async fn a_lock_for_which_there_is_no_room_is_an_error_that_names_the_disk() {
    const TEST: &str = "full::a_lock_for_which_there_is_no_room_is_an_error_that_names_the_disk";
    let Some(disk) = Disk::mount(TEST, "nr_blocks=8,mode=0700") else { return };
    let (ylock, patient) = (client(&disk, SHORT).await, client(&disk, LEASE).await);
    disk.fill_but(0);
    let users = ylock.locks("users");
    let error = within("an answer", users.write("bob").now()).await.unwrap_err();
    names_the_disk(&error, "locks/users=bob");
    let error = within("it gives up after a lease", users.write("bob")).await.unwrap_err();
    names_the_disk(&error, "locks/users=bob");
    assert_eq!(names(&disk.folder(), "locks"), [""; 0], "of a file that was made in vain nothing stays");
    // A waiter that bears it goes on when there is room.
    let users = patient.locks("users");
    let waits = tokio::spawn(async move { users.write("bob").await });
    within("an answer", ylock.locks("users").write("alice").now()).await.unwrap_err();
    disk.free();
    let guard = within("it gets in", waits).await.unwrap().unwrap();
    assert!(ylock.locks("users").write("bob").now().await.unwrap().is_none());
    drop(guard);
}

#[tokio::test]
async fn a_lock_that_is_held_is_renewed_and_given_back_where_there_is_no_room() {
    const TEST: &str = "full::a_lock_that_is_held_is_renewed_and_given_back_where_there_is_no_room";
    let Some(disk) = Disk::mount(TEST, "nr_blocks=8,mode=0700") else { return };
    let (engine, another) = (connect(&disk).await.unwrap(), connect(&disk).await.unwrap());
    let (held, waits) = (request(&engine, "alice"), request(&another, "alice"));
    let grant = engine.acquire(&held).await.unwrap().unwrap();
    disk.fill_but(0);
    for _ in 0..3 {
        let renewed = engine.renew(&[Holding::new(grant.clone(), None)]).await.remove(0).unwrap();
        assert!(matches!(renewed, Renewal::Renewed { .. }), "{renewed:?}");
    }
    // Another one finds room in the queue, and gets in.
    assert!(another.at_once().unwrap().acquire(&waits).is_none());
    assert_eq!(engine.inspect(&held.key).await.unwrap().queue.len(), 1);
    assert_eq!(engine.release(&held.key, held.id, None).await.unwrap(), Release::Released);
    let next = within("it gets in", another.acquire(&waits)).await.unwrap().unwrap();
    assert!(next.token > grant.token);
    assert_eq!(another.release(&held.key, waits.id, None).await.unwrap(), Release::Released);
}

/// Contenders come and go until what is to be stored is longer than a page, and the disk has more or less room for that.
#[tokio::test]
async fn a_change_for_which_there_is_no_room_changes_nothing() {
    const TEST: &str = "full::a_change_for_which_there_is_no_room_changes_nothing";
    let Some(disk) = Disk::mount(TEST, "nr_blocks=24,mode=0700") else { return };
    let (mut refused, mut most) = (0, 0);
    for seed in 0..ylock_testkit::short_or_long(60, 2_000) {
        let mut queue = Contenders::of(&disk, seed).await;
        for _ in 0..100 {
            queue.change().await;
            most = most.max(queue.there.len());
        }
        refused += queue.refused;
        disk.free();
        queue.leave().await;
        assert_eq!(names(&disk.folder(), "locks"), [""; 0], "seed {seed}");
    }
    assert!(refused > 500 && most > 40, "{refused} changes without room, {most} contenders at most");
}

/// The contenders for one lock, as they are to be.
struct Contenders {
    engine: FileEngine,
    chance: StdRng,
    there: Vec<AcquisitionId>,
    refused: usize,
}

impl Contenders {
    async fn of(disk: &Disk, seed: u64) -> Self {
        let (engine, mut chance) = (connect(disk).await.unwrap(), StdRng::seed_from_u64(seed));
        disk.fill_but(chance.random_range(0..8));
        Self { engine, chance, there: Vec::new(), refused: 0 }
    }

    async fn change(&mut self) {
        let key = request(&self.engine, "alice").key;
        let joins = self.there.is_empty() || self.chance.random_bool(0.8);
        let mut after = self.there.clone();
        // Nothing, where one that would have to wait is not told at once what became of that.
        let changed = if joins {
            let new = request(&self.engine, "alice");
            after.push(new.id);
            self.engine.at_once().unwrap().acquire(&new).transpose().map(|granted| granted.map(drop))
        } else {
            let id = after.remove(self.chance.random_range(0..after.len()));
            self.engine.release(&key, id, None).await.map(|_| Some(()))
        };
        let seen = self.engine.inspect(&key).await.unwrap();
        let holders = seen.holders.iter().map(|holder| holder.id);
        let seen: Vec<_> = holders.chain(seen.queue.iter().map(|waiter| waiter.id)).collect();
        self.refused += usize::from(seen != after);
        match changed {
            Ok(_) if seen == after => self.there = after,
            Ok(told) => assert!(told.is_none() && seen == self.there, "{seen:?}, not {after:?}"),
            Err(error) => {
                names_the_disk(&error, "locks/users=alice");
                assert_eq!(seen, self.there);
            }
        }
    }

    async fn leave(self) {
        let key = request(&self.engine, "alice").key;
        for id in self.there {
            assert_eq!(self.engine.release(&key, id, None).await.unwrap(), Release::Released);
        }
        self.engine.close().await.unwrap();
    }
}

#[tokio::test]
async fn the_first_client_of_a_full_disk_fails_and_comes_in_when_there_is_room() {
    const TEST: &str = "full::the_first_client_of_a_full_disk_fails_and_comes_in_when_there_is_room";
    let Some(disk) = Disk::mount(TEST, "nr_blocks=8,mode=0700") else { return };
    disk.fill_but(0);
    for _ in 0..2 {
        names_the_disk(&within("an answer", connect(&disk)).await.unwrap_err(), "layout");
    }
    disk.free();
    let engine = connect(&disk).await.unwrap();
    let held = request(&engine, "alice").with_patience(Patience::Try);
    assert!(engine.acquire(&held).await.unwrap().is_some());
}

/// Some file systems run out of files before they run out of pages.
#[tokio::test]
async fn a_disk_without_room_for_another_file_is_named() {
    const TEST: &str = "full::a_disk_without_room_for_another_file_is_named";
    // The folder it is mounted on, that of the locks, its three folders, `layout`, a pipe, and one more.
    let Some(disk) = Disk::mount(TEST, "nr_inodes=8,mode=0700") else { return };
    let engine = connect(&disk).await.unwrap();
    let held = request(&engine, "alice").with_patience(Patience::Try);
    assert!(engine.acquire(&held).await.unwrap().is_some());
    names_the_disk(&within("an answer", connect(&disk)).await.unwrap_err(), "clients/");
    assert_eq!(names(&disk.folder(), "clients").len(), 1);
    let tries = request(&engine, "bob").with_patience(Patience::Try);
    names_the_disk(&within("an answer", engine.acquire(&tries)).await.unwrap_err(), "locks/users=bob");
    assert_eq!(engine.release(&held.key, held.id, None).await.unwrap(), Release::Released);
    engine.close().await.unwrap();
    // It has its pipe open until then, which is a file.
    drop(engine);
    let engine = connect(&disk).await.unwrap();
    assert!(engine.acquire(&tries).await.unwrap().is_some());
}
