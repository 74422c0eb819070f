//! Ten thousand random operations, with a look after each: ties, stamps out of order, deletions and ends of TTLs.

use std::time::Duration;

use futures_util::{StreamExt, stream};
use parking_lot::Mutex;
use ylock_core::{Key, Owner};
use ylock_engine_cassandra::algorithm::store::Slot;
use ylock_testkit::while_it_goes_on;

use super::operations::{Operation, Operations};
use super::places::{self, Places};
use super::sides::{Look, Real, Simulated};

const OPERATIONS: usize = 10_000;
/// What is seldom must have been there so often.
const OF_EACH_KIND: usize = 100;
const OF_ONE_KEY: usize = 40;
/// By far more than it takes until there is enough of what is seldom, also where most are given up.
const KEYS: u64 = 50_000;
/// Several times what a key waits for the end of a TTL.
const STUCK: Duration = Duration::from_secs(60);
/// What ended stays what it was until a node compacts it, and when that happens only the node decides.
const NEVER_COMPACTED: &str = "compaction = {'class': 'SizeTieredCompactionStrategy', 'enabled': 'false'} \
                               AND memtable_flush_period_in_ms = 0";

/// What was compared so far.
#[derive(Debug, Default)]
struct Tally {
    operations: usize,
    looks: usize,
    /// Looks that show something else than the one before, with nothing but time between them.
    ends: usize,
    ties: usize,
    ties_with_ended: usize,
    ties_with_deletion: usize,
    ties_with_burial: usize,
    older: usize,
    /// Keys that were given up because an answer came too late to know in which second it was made.
    given_up: usize,
}

/// One operation, and the second in which both sides did it.
type Done = (i64, Operation);

/// The comparison of one key.
struct Comparison<'a> {
    real: &'a Real,
    simulated: Simulated,
    key: Key,
    number: u64,
    tally: &'a Mutex<Tally>,
    places: &'a Places,
    done: Vec<Done>,
}

impl<'a> Comparison<'a> {
    async fn run(real: &'a Real, group: &str, number: u64, tally: &'a Mutex<Tally>, places: &'a Places) {
        let place = places.take().await;
        let began = real.clock.sending().await;
        let simulated = Simulated::new(began).without_compaction();
        let key = Key::new(group, number.to_string()).unwrap();
        let mut comparison = Self { real, simulated, key, number, tally, places, done: Vec::new() };
        if comparison.operate(Operations::new(number)).await.is_none() {
            tally.lock().given_up += 1;
            places.note_late();
        }
        places.give_back(place);
    }

    /// Returns nothing when it is not known in which second the real node did something.
    async fn operate(&mut self, mut operations: Operations) -> Option<()> {
        let mut last = None;
        for _ in 0..OF_ONE_KEY {
            let pause = operations.pause();
            let mut second = self.real.clock.sending().await;
            if pause > 0 {
                second = self.real.clock.sending_from(second + pause).await;
                let shown = self.compare(second).await?;
                self.tally.lock().ends += usize::from(last.is_some_and(|last| last != shown));
            }
            let operation = operations.next();
            self.apply(second, operation).await?;
            last = Some(self.compare(second).await?);
            self.places.note_in_time();
        }
        Some(())
    }

    async fn apply(&mut self, second: i64, operation: Operation) -> Option<()> {
        self.real.apply(&self.key, &operation).await;
        self.is_still(second)?;
        self.simulated.apply(second, &self.key, &operation);
        self.tally.lock().count(&self.done, second, &operation);
        self.done.push((second, operation));
        Some(())
    }

    async fn compare(&self, second: i64) -> Option<Look> {
        let real = self.real.look(&self.key).await;
        self.is_still(second)?;
        let simulated = self.simulated.look(second, &self.key);
        let mut tally = self.tally.lock();
        tally.looks += 1;
        assert!(
            real == simulated,
            "after {} operations, key {}: {}\nin second {second} the real node shows{}\nand the simulated one{}",
            tally.operations,
            self.number,
            self.history(),
            lines(&real),
            lines(&simulated)
        );
        Some(real)
    }

    fn is_still(&self, second: i64) -> Option<()> {
        self.real.clock.is_still(second).then_some(())
    }

    fn history(&self) -> String {
        self.done.iter().map(|(second, operation)| format!("\n{second}: {operation:?}")).collect()
    }
}

/// Returns a look with a line for each row.
fn lines(look: &Look) -> String {
    let Ok(partition) = look else { return format!("\n{look:?}") };
    let rows: String = partition.rows.iter().map(|seen| format!("\n{seen:?}")).collect();
    format!("{rows}\nlast tokens {:?} {:?}", partition.last_write, partition.last_read)
}

/// The cells that one operation writes with its stamp.
#[derive(PartialEq)]
enum Cells {
    Row,
    Revocation,
    Burial,
    Deletion,
}

/// Returns whose cells these are, which they are, their stamp, and for how long they live.
fn stamped(operation: &Operation) -> (Slot, Cells, i64, u32) {
    match operation {
        Operation::Write { slot, write } => (*slot, Cells::Row, write.stamp, write.row_ttl),
        Operation::Revoke { slot, stamp, ttl, .. } => (*slot, Cells::Revocation, *stamp, *ttl),
        Operation::Bury { slot, heartbeat } => (*slot, Cells::Burial, *heartbeat, u32::MAX),
        Operation::Erase { slot, stamp } => (*slot, Cells::Deletion, *stamp, u32::MAX),
    }
}

impl Tally {
    /// Counts one more operation, and the kinds of what it meets.
    fn count(&mut self, before: &[Done], second: i64, operation: &Operation) {
        let (slot, cells, stamp, _) = stamped(operation);
        let of_slot = before.iter().map(|(second, operation)| (*second, operation, stamped(operation)));
        let met: Vec<_> = of_slot.filter(|(_, _, known)| known.0 == slot).collect();
        let ties = || met.iter().filter(|(_, other, known)| known.2 == stamp && *other != operation);
        let has_ended = |written: i64, ttl: u32| written + i64::from(ttl.max(1)) <= second;
        self.operations += 1;
        self.ties += usize::from(ties().any(|(_, _, known)| known.1 == cells));
        self.ties_with_ended +=
            usize::from(ties().any(|(written, _, known)| known.1 == cells && has_ended(*written, known.3)));
        self.ties_with_deletion += usize::from(
            ties().any(|(_, _, known)| (known.1 == Cells::Deletion) != (cells == Cells::Deletion)),
        );
        let of_a_row = |known: &Cells| {
            matches!((known, &cells), (Cells::Row, Cells::Burial) | (Cells::Burial, Cells::Row))
        };
        self.ties_with_burial += usize::from(ties().any(|(_, _, known)| of_a_row(&known.1)));
        self.older += usize::from(met.iter().any(|(_, _, known)| known.2 > stamp));
    }

    fn has_enough(&self) -> bool {
        let ties = [self.ties, self.ties_with_ended, self.ties_with_deletion, self.ties_with_burial];
        let seldom = [self.ends, self.older].into_iter().chain(ties);
        self.operations >= OPERATIONS && seldom.min() >= Some(OF_EACH_KIND)
    }
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn ten_thousand_operations_have_the_same_outcome() {
    let real = Real::with(NEVER_COMPACTED).await;
    let (group, tally) = (format!("simulated:{}", Owner::new()), Mutex::default());
    let places = Places::new();
    {
        let keys =
            stream::iter(0..KEYS).map(|number| Comparison::run(&real, &group, number, &tally, &places));
        let mut keys = keys.buffer_unordered(places::MOST);
        let compared = async { while !tally.lock().has_enough() && keys.next().await.is_some() {} };
        while_it_goes_on(STUCK, "the keys are compared", compared).await;
        assert!(tally.lock().has_enough(), "{KEYS} keys are not enough: {:?}", tally.lock());
    }
    println!("{:?}", tally.lock());
    real.remove().await;
}
