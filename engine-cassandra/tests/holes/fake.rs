//! A store of one replica in memory: last write wins per cell, with TTL, and with writes that fail, arrive late or both.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use ylock_core::engine::AcquisitionId;
use ylock_core::environment::{Environment, Moment};
use ylock_core::{Error, ErrorKind, Key, Mode, Options, Result, StoreToken, Ylock};
use ylock_engine_cassandra::algorithm::store::{
    Claim, LastTokens, Page, Partition, Row, SeenRow, Slot, State, Store, Write,
};
use ylock_engine_cassandra::options::Protocol;
use ylock_engine_cassandra::{CassandraEngine, CassandraOptions};

pub(crate) use crate::world::World;

pub(crate) const LEASE: Duration = Duration::from_secs(10);

/// What becomes of a write.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Applied and acknowledged.
    Arrives,
    /// Applied, but the answer is lost.
    ArrivesUnheard,
    /// Not applied before [`Fake::deliver`]; the answer is lost.
    IsLate,
    /// Refused before any replica has it.
    IsRefused,
    /// Acknowledged, and never shown: as where an operator has deleted the row with a later timestamp.
    IsHidden,
    /// Applied at once and acknowledged after this long.
    IsHeardAfter(Duration),
}

type Plan = Box<dyn FnMut(Slot, &Write) -> Fate + Send>;

/// See the [module](self).
pub(crate) struct Fake {
    environment: Arc<dyn Environment>,
    keys: Mutex<HashMap<Key, Cells>>,
    plan: Mutex<Plan>,
    late: Mutex<Vec<(Key, Slot, Write)>>,
    slow_reads: Mutex<Vec<Duration>>,
    slow: Mutex<Duration>,
    is_away: AtomicBool,
    stamps: Mutex<BTreeSet<(Slot, i64)>>,
    repeated: Mutex<Vec<i64>>,
    burials: Mutex<Vec<(Slot, i64)>>,
    burying: AtomicU64,
    /// The most burials that were on their way at once.
    pub(crate) most_burying: AtomicU64,
    delivers_with_burial: AtomicBool,
    buries_nothing: AtomicBool,
    pub(crate) writes: AtomicU64,
    pub(crate) reads: AtomicU64,
    /// Reads of the last tokens alone.
    pub(crate) token_reads: AtomicU64,
    pub(crate) erasures: AtomicU64,
}

#[derive(Default)]
struct Cells {
    slots: BTreeMap<Slot, SlotCells>,
    last_write: Option<StoreToken>,
    last_read: Option<StoreToken>,
}

#[derive(Default)]
struct SlotCells {
    row: Option<Cell<Row>>,
    claim: Option<Cell<Claim>>,
    revoked: Option<Cell<AcquisitionId>>,
}

struct Cell<T> {
    stamp: i64,
    value: T,
    expires: Moment,
}

/// The later timestamp wins, whatever arrives first.
fn put<T>(cell: &mut Option<Cell<T>>, new: Cell<T>) {
    if cell.as_ref().is_none_or(|old| old.stamp < new.stamp) {
        *cell = Some(new);
    }
}

fn get<T: Clone>(cell: &Option<Cell<T>>, now: Moment) -> Option<T> {
    cell.as_ref().filter(|cell| cell.expires > now).map(|cell| cell.value.clone())
}

impl Fake {
    pub(crate) fn new(environment: Arc<dyn Environment>) -> Arc<Self> {
        Arc::new(Self {
            environment,
            keys: Mutex::default(),
            plan: Mutex::new(Box::new(|_, _| Fate::Arrives)),
            late: Mutex::default(),
            slow_reads: Mutex::default(),
            slow: Mutex::new(Duration::from_millis(1)),
            is_away: AtomicBool::new(false),
            stamps: Mutex::default(),
            repeated: Mutex::default(),
            burials: Mutex::default(),
            burying: AtomicU64::new(0),
            most_burying: AtomicU64::new(0),
            delivers_with_burial: AtomicBool::new(false),
            buries_nothing: AtomicBool::new(false),
            writes: AtomicU64::new(0),
            reads: AtomicU64::new(0),
            token_reads: AtomicU64::new(0),
            erasures: AtomicU64::new(0),
        })
    }

    /// Decides what becomes of the writes from now on.
    pub(crate) fn plan(&self, plan: impl FnMut(Slot, &Write) -> Fate + Send + 'static) {
        *self.plan.lock() = Box::new(plan);
    }

    /// Lets the next read take this long; it shows what there is then.
    pub(crate) fn slow_read(&self, time: Duration) {
        self.slow_reads.lock().push(time);
    }

    /// Says that another writer has given the lock back.
    pub(crate) fn pass_a_turn(&self, key: &Key) {
        if let Some(cells) = self.keys.lock().get_mut(key) {
            let last = cells.last_write.unwrap_or(StoreToken::LOWEST);
            cells.last_write = StoreToken::new(last.get() + 1);
        }
    }

    /// Lets all reads take this long from now on.
    pub(crate) fn slow_reads(&self, time: Duration) {
        *self.slow.lock() = time;
    }

    /// Answers no client from now on, or all clients again.
    pub(crate) fn is_away(&self, is_away: bool) {
        self.is_away.store(is_away, Ordering::Relaxed);
    }

    /// The timestamps that came more than once.
    pub(crate) fn repeated(&self) -> Vec<i64> {
        self.repeated.lock().clone()
    }

    /// The burials that were asked for: of which slot, and at which heartbeat.
    pub(crate) fn burials(&self) -> Vec<(Slot, i64)> {
        self.burials.lock().clone()
    }

    /// Asks a row to give up an acquisition, for whatever reason.
    pub(crate) fn ask_to_give_up(&self, key: &Key, slot: Slot, id: AcquisitionId, stamp: i64, ttl: u32) {
        let expires = self.environment.now().plus(Duration::from_secs(u64::from(ttl)));
        let mut keys = self.keys.lock();
        let own = keys.entry(key.clone()).or_default().slots.entry(slot).or_default();
        put(&mut own.revoked, Cell { stamp, value: id, expires });
    }

    async fn answer(&self, after: Duration) -> Result<()> {
        self.environment.sleep(after).await;
        match self.is_away.load(Ordering::Relaxed) {
            true => Err(Error::new(ErrorKind::Unavailable, "no answer")),
            false => Ok(()),
        }
    }

    /// The rows of a lock expire, by the clock of a server that is ahead. The token cells live longer.
    pub(crate) fn expire(&self, key: &Key) {
        if let Some(cells) = self.keys.lock().get_mut(key) {
            cells.slots.values_mut().for_each(|own| own.row = None);
        }
    }

    /// Lets the late writes arrive. Returns how many.
    pub(crate) fn deliver(&self) -> usize {
        let late = std::mem::take(&mut *self.late.lock());
        late.iter().for_each(|(key, slot, write)| self.apply(key, *slot, write));
        late.len()
    }

    /// Lets the late writes arrive when something is buried for the next time.
    pub(crate) fn deliver_with_the_next_burial(&self) {
        self.delivers_with_burial.store(true, Ordering::Relaxed);
    }

    /// Acknowledges burials from now on and lets the rows stay, as if another program had written them at a later time.
    pub(crate) fn bury_nothing(&self) {
        self.buries_nothing.store(true, Ordering::Relaxed);
    }

    /// Shows a row once more as this write has left it, as a replica does that has missed what came after; a token that came later stays.
    pub(crate) fn show_again(&self, key: &Key, slot: Slot, write: &Write) {
        if let Some(own) = self.keys.lock().get_mut(key).and_then(|cells| cells.slots.get_mut(&slot)) {
            own.row = None;
        }
        self.apply(key, slot, write);
    }

    /// The partition as it is.
    pub(crate) fn seen(&self, key: &Key) -> Partition {
        let now = self.environment.now();
        let keys = self.keys.lock();
        let Some(cells) = keys.get(key) else { return Partition::default() };
        let rows = cells.slots.iter().map(|(slot, cells)| SeenRow {
            slot: *slot,
            row: get(&cells.row, now),
            heartbeat: cells.row.as_ref().filter(|cell| cell.expires > now).map(|cell| cell.stamp),
            claim: get(&cells.claim, now),
            claim_stamp: cells.claim.as_ref().filter(|cell| cell.expires > now).map(|cell| cell.stamp),
            revoked: get(&cells.revoked, now),
        });
        let rows = rows
            .filter(|seen| seen.row.is_some() || seen.claim.is_some() || seen.revoked.is_some())
            .collect();
        Partition { rows, last_write: cells.last_write, last_read: cells.last_read }
    }

    fn apply(&self, key: &Key, slot: Slot, write: &Write) {
        let now = self.environment.now();
        let expires = |ttl: u32| now.plus(Duration::from_secs(u64::from(ttl)));
        let mut keys = self.keys.lock();
        let cells = keys.entry(key.clone()).or_default();
        let own = cells.slots.entry(slot).or_default();
        put(
            &mut own.row,
            Cell { stamp: write.stamp, value: write.row.clone(), expires: expires(write.row_ttl) },
        );
        if let Some(claim) = write.claim {
            put(&mut own.claim, Cell { stamp: write.stamp, value: claim.claim, expires: expires(claim.ttl) });
        }
        if let Some(used) = write.used {
            let last =
                if used.claim.mode == Mode::Write { &mut cells.last_write } else { &mut cells.last_read };
            *last = (*last).max(Some(used.claim.token));
        }
    }
}

impl fmt::Debug for Fake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fake")
    }
}

#[async_trait]
impl Store for Fake {
    async fn write(&self, key: &Key, slot: Slot, write: &Write) -> Result<()> {
        if !self.stamps.lock().insert((slot, write.stamp)) {
            self.repeated.lock().push(write.stamp);
        }
        self.answer(Duration::from_millis(1)).await?;
        self.writes.fetch_add(1, Ordering::Relaxed);
        let fate = (self.plan.lock())(slot, write);
        match fate {
            Fate::Arrives | Fate::ArrivesUnheard | Fate::IsHeardAfter(_) => self.apply(key, slot, write),
            Fate::IsLate => self.late.lock().push((key.clone(), slot, write.clone())),
            Fate::IsHidden => {}
            Fate::IsRefused => {
                return Err(Error::new(ErrorKind::Config, "the user may not do this").without_effect());
            }
        }
        match fate {
            Fate::Arrives | Fate::IsHidden | Fate::IsRefused => {}
            Fate::IsHeardAfter(time) => self.environment.sleep(time).await,
            Fate::ArrivesUnheard | Fate::IsLate => {
                return Err(Error::new(ErrorKind::Unavailable, "no answer"));
            }
        }
        Ok(())
    }

    async fn read(&self, key: &Key) -> Result<Partition> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        let slow = self.slow_reads.lock().pop();
        let time = slow.unwrap_or_else(|| *self.slow.lock());
        self.answer(time).await?;
        Ok(self.seen(key))
    }

    async fn read_last_tokens(&self, key: &Key) -> Result<LastTokens> {
        self.token_reads.fetch_add(1, Ordering::Relaxed);
        self.answer(Duration::from_millis(1)).await?;
        Ok(self.seen(key).last_tokens())
    }

    /// All in one page.
    async fn keys(&self, _: Option<i64>) -> Result<Page> {
        self.answer(Duration::from_millis(1)).await?;
        let known: Vec<Key> = self.keys.lock().keys().cloned().collect();
        let takes_part = |seen: &SeenRow| seen.row.as_ref().is_some_and(|row| row.state != State::Idle);
        let keys = known.into_iter().filter(|key| self.seen(key).rows.iter().any(takes_part));
        Ok(Page { keys: keys.collect(), next: None })
    }

    async fn revoke(&self, key: &Key, slot: Slot, id: AcquisitionId, stamp: i64, ttl: u32) -> Result<()> {
        self.ask_to_give_up(key, slot, id, stamp, ttl);
        Ok(())
    }

    async fn bury(&self, key: &Key, slot: Slot, heartbeat: i64) -> Result<()> {
        let at_once = self.burying.fetch_add(1, Ordering::Relaxed) + 1;
        self.most_burying.fetch_max(at_once, Ordering::Relaxed);
        let answer = self.answer(Duration::from_millis(1)).await;
        self.burying.fetch_sub(1, Ordering::Relaxed);
        answer?;
        self.burials.lock().push((slot, heartbeat));
        if self.buries_nothing.load(Ordering::Relaxed) {
            return Ok(());
        }
        if let Some(cells) = self.keys.lock().get_mut(key).and_then(|cells| cells.slots.get_mut(&slot)) {
            cells.row.take_if(|row| row.stamp <= heartbeat);
        }
        if self.delivers_with_burial.swap(false, Ordering::Relaxed) {
            self.deliver();
        }
        Ok(())
    }

    async fn erase(&self, key: &Key, slot: Slot, _: i64) -> Result<()> {
        self.erasures.fetch_add(1, Ordering::Relaxed);
        if let Some(cells) = self.keys.lock().get_mut(key) {
            cells.slots.remove(&slot);
        }
        Ok(())
    }
}

pub(crate) fn engine(fake: &Arc<Fake>, world: &Arc<World>) -> CassandraEngine {
    engine_of(fake, world, Protocol::Queue)
}

pub(crate) fn engine_of(fake: &Arc<Fake>, world: &Arc<World>, protocol: Protocol) -> CassandraEngine {
    engine_with(fake, world, &options().with_protocol(protocol))
}

/// The options of every client, without any that a test is about.
pub(crate) fn options() -> CassandraOptions {
    CassandraOptions::new("fake").with_lease(LEASE)
}

pub(crate) fn engine_with(
    fake: &Arc<Fake>,
    world: &Arc<World>,
    options: &CassandraOptions,
) -> CassandraEngine {
    CassandraEngine::over(
        Arc::clone(fake) as Arc<dyn Store>,
        Arc::clone(world) as Arc<dyn Environment>,
        options,
    )
}

pub(crate) fn client(fake: &Arc<Fake>, world: &Arc<World>) -> Ylock {
    Ylock::new(engine(fake, world)).with_options(Options::default().with_lease(LEASE))
}
