//! Contenders that take turns by other locks: for the benchmark of the file engine, which starts this program for each of them.
//!
//! `ylock-peers LOCK MILLISECONDS FILE` takes the lock of this file again and again for so long, and prints for each turn when it began and when it
//! ended, in nanoseconds of the clock that all processes read.

use std::error::Error;
use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use fd_lock::RwLock;
use rusqlite::{Connection, TransactionBehavior};
use rustix::time::{ClockId, clock_gettime};

const HOLD: Duration = Duration::from_millis(1);
/// Longer than any contender waits: then SQLite would give up.
const BUSY: Duration = Duration::from_secs(600);

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// One turn: when its holder came in, and when it began to leave.
type Turn = (u64, u64);

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [lock, time, file] = &*arguments else { return Err("ylock-peers LOCK MILLISECONDS FILE".into()) };
    let (time, file) = (Duration::from_millis(time.parse()?), Path::new(file));
    let turns = match &**lock {
        "fd-lock" => by_fd_lock(time, file)?,
        "sqlite" => by_sqlite(time, file)?,
        other => return Err(format!("{other}: the locks are fd-lock and sqlite").into()),
    };
    turns.into_iter().for_each(|(came, left)| println!("{came} {left}"));
    Ok(())
}

/// Takes turns for so long.
fn take_turns(time: Duration, mut turn: impl FnMut() -> Result<Turn>) -> Result<Vec<Turn>> {
    let (mut turns, end) = (Vec::new(), Instant::now() + time);
    while Instant::now() < end {
        turns.push(turn()?);
    }
    Ok(turns)
}

fn by_fd_lock(time: Duration, file: &Path) -> Result<Vec<Turn>> {
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(file)?;
    let mut lock = RwLock::new(file);
    take_turns(time, || {
        loop {
            match lock.write() {
                Ok(_guard) => return Ok(inside()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    })
}

/// `BEGIN IMMEDIATE` is the lock; nothing is written, as none of the others writes.
fn by_sqlite(time: Duration, file: &Path) -> Result<Vec<Turn>> {
    let mut database = Connection::open(file)?;
    database.busy_timeout(BUSY)?;
    take_turns(time, || {
        let transaction = database.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let turn = inside();
        transaction.commit()?;
        Ok(turn)
    })
}

/// What a holder does.
fn inside() -> Turn {
    let came = now();
    thread::sleep(HOLD);
    (came, now())
}

/// The clock that all processes read.
fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
