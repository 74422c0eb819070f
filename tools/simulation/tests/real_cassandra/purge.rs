//! What compaction makes of cells that have ended, and of deletions: tombstones, and after `gc_grace_seconds` nothing.

use std::time::Duration;

use futures_util::future::join_all;
use ylock_core::engine::{AcquisitionId, Ticket};
use ylock_core::{ClientName, Key, Mode, Owner};
use ylock_engine_cassandra::algorithm::store::{Row, Slot, State, Write};

use super::operations::Operation;
use super::sides::{Look, Real, Simulated};

const GC_GRACE: i64 = 20;
/// Longer than that.
const LATE: u32 = 25;
/// The seconds after which is looked: all that is short has ended; nothing may be forgotten yet; what has ended is; the late one too.
const LOOKS: [i64; 4] = [5, 18, 23, 28];
/// The seconds that the real node has to write its memory to the disk and to compact it.
const ATTEMPTS: usize = 15;
/// As often as it is possible. Two files are enough to compact, says the schema.
const OFTEN_COMPACTED: &str = "memtable_flush_period_in_ms = 1000";
/// So many that each node has some of them: it compacts only what is new together with what is old.
const FILLERS: usize = 12;

const STAMP: i64 = 100;
/// The slots, by what is in them before the probe.
const TIED: u128 = 0;
const DELETED: u128 = 1;
const ENDED: u128 = 2;
const ENDED_LATE: u128 = 3;
const FILLED: u128 = 4;

/// What a probe writes shows this.
const PROBE: i64 = 2;

fn write(slot: u128, stamp: i64, ttl: u32, since: i64) -> Operation {
    let row = Row {
        acquisition: AcquisitionId::from_u128(1),
        mode: Mode::Write,
        state: State::Held,
        ticket: Ticket::from_number(1),
        owner: Owner::from_bytes([1; 16]),
        client: ClientName::default(),
        since,
        lease: Duration::from_secs(10),
        next: None,
        hints: None,
    };
    Operation::Write {
        slot: Slot::from_u128(slot),
        write: Box::new(Write { stamp, row, row_ttl: ttl, claim: None, used: None }),
    }
}

/// What is there at the beginning.
fn prepared() -> [Operation; 4] {
    [
        write(TIED, STAMP, 1, 1),
        Operation::Erase { slot: Slot::from_u128(DELETED), stamp: STAMP },
        write(ENDED, STAMP, 1, 1),
        write(ENDED_LATE, STAMP, LATE, 1),
    ]
}

/// What shows whether that is still there, as a tombstone: it hides these.
fn probes() -> [Operation; 4] {
    let older = |slot| write(slot, STAMP - 1, 1_000, PROBE);
    [write(TIED, STAMP, 1_000, PROBE), older(DELETED), older(ENDED), older(ENDED_LATE)]
}

/// Returns which probes are shown, by slot.
fn shown(look: &Look) -> [bool; 4] {
    let rows = &look.as_ref().expect("nothing is damaged").rows;
    [TIED, DELETED, ENDED, ENDED_LATE].map(|slot| {
        let seen = rows.iter().find(|seen| seen.slot == Slot::from_u128(slot));
        seen.and_then(|seen| seen.row.as_ref()).is_some_and(|row| row.since == PROBE)
    })
}

/// Returns what a node shows that has compacted just now, so many seconds after the beginning.
fn expected(elapsed: i64) -> [bool; 4] {
    let forgotten = elapsed > GC_GRACE;
    // It had lived for longer than `gc_grace_seconds`, so there is no tombstone at all.
    [forgotten, forgotten, forgotten, elapsed >= i64::from(LATE)]
}

fn simulated(key: &Key, elapsed: i64) -> [bool; 4] {
    let node = Simulated::new(0);
    prepared().iter().for_each(|operation| node.apply(0, key, operation));
    // With any write a node compacts all of the lock.
    node.apply(elapsed, key, &write(FILLED, STAMP, 1, 1));
    probes().iter().for_each(|operation| node.apply(elapsed, key, operation));
    shown(&node.look(elapsed, key))
}

async fn apply_all(real: &Real, key: &Key, operations: &[Operation]) {
    join_all(operations.iter().map(|operation| real.apply(key, operation))).await;
}

/// Writes what is probed later, one key for each probe; returns in which second.
async fn prepare(real: &Real) -> (i64, Vec<Key>) {
    loop {
        let second = real.clock.sending().await;
        let group = format!("simulated:{}", Owner::new());
        let keys = (0..LOOKS.len() * ATTEMPTS).map(|number| Key::new(group.as_str(), number.to_string()));
        let keys: Vec<_> = keys.map(Result::unwrap).collect();
        let prepared = prepared();
        join_all(keys.iter().map(|key| apply_all(real, key, &prepared))).await;
        if real.clock.is_still(second) {
            return (second, keys);
        }
    }
}

/// Writes something new to every node.
async fn fill(real: &Real) {
    let group = format!("simulated:{}", Owner::new());
    let filler = [write(FILLED, STAMP, 1_000, 1)];
    let keys: Vec<_> =
        (0..FILLERS).map(|number| Key::new(group.as_str(), number.to_string()).unwrap()).collect();
    join_all(keys.iter().map(|key| apply_all(real, key, &filler))).await;
}

/// Returns what the real node shows; nothing if it is not known in which second.
async fn probed(real: &Real, key: &Key, second: i64) -> Option<[bool; 4]> {
    apply_all(real, key, &probes()).await;
    let look = real.look(key).await;
    real.clock.is_still(second).then(|| shown(&look))
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn compaction_forgets_the_same() {
    let real = Real::with(OFTEN_COMPACTED).await;
    let (began, keys) = prepare(&real).await;
    for (look, keys) in LOOKS.iter().zip(keys.chunks(ATTEMPTS)) {
        let mut differences = Vec::new();
        let mut second = began + look;
        for key in keys {
            fill(&real).await;
            second = real.clock.sending_from(second).await;
            let elapsed = second - began;
            let simulated = simulated(key, elapsed);
            assert_eq!(simulated, expected(elapsed), "the simulated node after {elapsed} s");
            match probed(&real, key, second).await {
                Some(shown) if shown == simulated => {
                    println!("after {elapsed} s the probes are shown: {shown:?}");
                    differences.clear();
                    break;
                }
                shown => differences.push((elapsed, shown)),
            }
            second += 1;
        }
        assert!(differences.is_empty(), "what the real node shows: {differences:?}");
    }
    real.remove().await;
}
