//! Three processes that do random operations at a few locks, one of them killed now and then. Each notes what it got and when, by the clock that
//! all of them read; a judge goes through all notes in the order of their time.

mod judge;
mod notes;
mod worker;

use std::path::PathBuf;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use ylock_core::Key;
use ylock_core::engine::{AcquisitionId, Engine, Patience, Release, Request};
use ylock_core::environment::SystemEnvironment;
use ylock_core::{ClientName, Mode, Owner};
use ylock_engine_file::FileEngine;
use ylock_testkit::{ChildProcess, eventually};

use super::{Folder, LEASE};
use judge::Judge;
use notes::{Event, Told};

const TEST: &str = "at_once::processes_that_do_random_operations_keep_each_other_out_and_tokens_grow";
const PROCESSES: usize = 3;
const KEYS: usize = 3;
/// The operations of one process in one round.
const SHARE: usize = 670;
const KILLS: usize = 2;
/// Longer than all turns of a round take.
const BOUND: Duration = Duration::from_secs(50);
/// Fewer than one operation takes in the notes.
const BYTES: usize = 50;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_that_do_random_operations_keep_each_other_out_and_tokens_grow() {
    if let Some(told) = ChildProcess::told() {
        return worker::work(&Told::parse(&told)).await;
    }
    // 20 000 operations, or a million.
    let rounds = ylock_testkit::short_or_long(10, 500);
    let mut done = 0;
    for round in 0..rounds {
        done += play(round).await;
    }
    assert!(done >= rounds as usize * PROCESSES * SHARE, "{done} operations");
    println!("{done} operations, {} processes killed", rounds as usize * KILLS);
}

/// Plays one round, in a folder of its own. Returns how many operations were done.
async fn play(round: u64) -> usize {
    let (folder, mut chance) = (Folder::new(), StdRng::seed_from_u64(round));
    // One that lives: what the killed have left is not cleared by a first client.
    let engine = folder.client().await;
    let mut judge = Judge::default();
    let mut processes: Vec<_> = (0..PROCESSES).map(|_| Process::start(&folder, &mut chance)).collect();
    for _ in 0..KILLS {
        let victim = chance.random_range(0..PROCESSES);
        let another = Process::start(&folder, &mut chance);
        let victim = std::mem::replace(&mut processes[victim], another);
        victim.kill(chance.random_range(0..SHARE * BYTES), &mut judge).await;
    }
    for mut process in processes {
        let said = process.child.says_until_it_ends().await;
        assert_eq!(said, ["done"], "round {round}: a process failed");
        judge.hear(&Event::read(&process.notes), None);
    }
    let done = judge.operations();
    judge.decide(round);
    nothing_is_left(&folder, engine).await;
    done
}

/// What the processes held is free, also what those had that were killed; and no file of theirs stays.
async fn nothing_is_left(folder: &Folder, engine: FileEngine) {
    for number in 0..KEYS {
        let tries = request(&engine, number, Mode::Write).with_patience(Patience::Try);
        assert!(engine.acquire(&tries).await.unwrap().is_some(), "lock {number} is held by none that lives");
        assert_eq!(engine.release(&key(number), tries.id, None).await.unwrap(), Release::Released);
    }
    let another = folder.client().await;
    assert_eq!(folder.clients().len(), 2, "{:?}", folder.clients());
    engine.close().await.unwrap();
    another.close().await.unwrap();
    assert!(folder.locks().is_empty() && folder.clients().is_empty(), "{folder:?}");
}

fn key(number: usize) -> Key {
    Key::new("at once", number as u64).unwrap()
}

fn request(engine: &FileEngine, key_number: usize, mode: Mode) -> Request {
    let id = AcquisitionId::new(&*engine.environment());
    Request::new(key(key_number), id, mode, Owner::new(), ClientName::default(), LEASE)
}

/// The clock that all processes read.
fn now() -> u64 {
    SystemEnvironment::shared().now().as_nanos()
}

struct Process {
    child: ChildProcess,
    notes: PathBuf,
}

impl Process {
    fn start(folder: &Folder, chance: &mut StdRng) -> Self {
        let seed: u64 = chance.random();
        let notes = folder.beside(&format!("notes-{seed:016x}"));
        let told = Told { seed, notes: notes.clone(), folder: folder.path().to_owned() };
        Self { child: ChildProcess::start(TEST, &told.to_text()), notes }
    }

    /// Kills it when it has noted so many bytes.
    async fn kill(self, bytes: usize, judge: &mut Judge) {
        let noted = || std::fs::metadata(&self.notes).map_or(0, |notes| notes.len());
        eventually(BOUND, "it works", async || noted() >= bytes as u64).await;
        // Before the signal is sent: until then it held what it had not begun to give back.
        let killed = now();
        drop(self.child);
        judge.hear(&Event::read(&self.notes), Some(killed));
    }
}
