//! The queue, as an observer sees it that sees everything: whether places are what they should be, and how often a client that came
//! later went first.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use ylock_core::engine::{AcquisitionId, Request};
use ylock_core::environment::Environment;
use ylock_core::{Fairness, Key, Mode};
use ylock_engine_cassandra::algorithm::store::{State, Write};

use crate::clocks::Clocks;
use crate::oracle::Oracle;
use crate::world::{Actor, World};

/// By how much one client must have come before another one, by all clocks, for an order of the two: its place is in the store by then.
const BEFORE: Duration = Duration::from_secs(1);

/// The observer of the queue; see the [module](self).
#[derive(Debug)]
pub struct Places {
    world: Arc<World>,
    oracle: Arc<Oracle>,
    /// The least time for which a row lives after the write of it was sent.
    lease: Duration,
    /// True if the clocks are good enough for every client to go behind all places that it saw.
    demanding: bool,
    /// True if the row of a client that has left lives for a lease, whatever the clocks of the nodes say.
    idle_rows_stay: bool,
    /// True if nothing goes wrong: of those that ask for `strict` none enters before one that came earlier.
    is_without_trouble: bool,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    rows: BTreeMap<(String, Actor), Row>,
    waiting: BTreeMap<AcquisitionId, Waiting>,
    entries: u64,
    inversions: u64,
}

/// The row that one client shows at one lock.
#[derive(Debug, Default)]
struct Row {
    acquisition: Option<AcquisitionId>,
    /// Its place. A client that is shown under another name keeps its place: that is no new one.
    ticket: Option<i64>,
    /// True if the client takes part: its looks are those that places are taken from.
    takes_part: bool,
    /// The last place that a quorum has, and until when it is there for sure.
    acknowledged: Option<Place>,
    /// The place that the last look showed for sure, and until when it is remembered.
    floor: Option<Place>,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    ticket: i64,
    until: u64,
}

/// A client that queues.
#[derive(Debug)]
struct Waiting {
    actor: Actor,
    key: Key,
    mode: Mode,
    began: u64,
    /// What its wall clock showed then, in microseconds, if it asks for the strict order.
    strict: Option<i64>,
    /// The moment at which a quorum had its place.
    arrived: Option<u64>,
}

/// The places that a look must show, if they are there until it ends.
#[derive(Debug)]
pub struct Shown(Vec<(Actor, Place)>);

impl Places {
    /// Creates an observer of an empty queue.
    pub fn new(world: &Arc<World>, oracle: &Arc<Oracle>, lease: Duration, demanding: bool) -> Self {
        let (world, oracle) = (Arc::clone(world), Arc::clone(oracle));
        Self {
            world,
            oracle,
            lease,
            demanding,
            idle_rows_stay: true,
            is_without_trouble: false,
            inner: Mutex::default(),
        }
    }

    /// Returns the observer of a queue in which the row of a client that has left may be gone at once, and its place with it.
    #[must_use]
    pub fn without_idle_rows(self) -> Self {
        Self { idle_rows_stay: false, ..self }
    }

    /// Returns the observer of a run in which nothing goes wrong.
    #[must_use]
    pub fn without_trouble(self, is_without_trouble: bool) -> Self {
        Self { is_without_trouble, ..self }
    }

    /// Notes that a client begins to queue, if it is one that goes behind others and that others go behind.
    pub fn begins(&self, clocks: &Clocks, request: &Request) {
        if request.fairness == Fairness::Unfair {
            return;
        }
        let (key, began) = (request.key.clone(), self.world.now());
        let strict = (request.fairness == Fairness::Strict).then(|| clocks.wall_micros());
        let waiting =
            Waiting { actor: clocks.actor(), key, mode: request.mode, began, strict, arrived: None };
        self.inner.lock().waiting.insert(request.id, waiting);
    }

    /// Notes that a client has entered: perhaps before another one whose place was there when it began.
    pub fn enters(&self, id: AcquisitionId) {
        let mut inner = self.inner.lock();
        let Some(own) = inner.waiting.remove(&id) else { return };
        let in_its_way: Vec<_> =
            inner.waiting.values().filter(|other| other.is_in_the_way_of(&own)).collect();
        let overtakes = in_its_way.iter().any(|other| {
            other.arrived.is_some_and(|arrived| arrived < own.began) && self.world.is_alive(other.actor)
        });
        let earlier =
            in_its_way.iter().find(|other| self.is_without_trouble && other.is_strictly_before(&own));
        let earlier = earlier.map(|other| other.actor);
        inner.entries += 1;
        inner.inversions += u64::from(overtakes);
        drop(inner);
        if let Some(earlier) = earlier {
            self.oracle.complain(format!(
                "{:?} enters before {earlier:?}, which came earlier, both strictly",
                own.actor
            ));
        }
    }

    /// Notes that a client does not wait any more.
    pub fn ends(&self, id: AcquisitionId) {
        self.inner.lock().waiting.remove(&id);
    }

    /// Returns how many of the clients that queued and entered overtook another one, and how many there were.
    pub fn inversions(&self) -> (u64, u64) {
        let inner = self.inner.lock();
        (inner.inversions, inner.entries)
    }

    /// Notes that a client sends a row.
    pub(crate) fn writes(&self, actor: Actor, key: &Key, write: &Write) {
        let now = self.world.now();
        let mut inner = self.inner.lock();
        let row = inner.row(key, actor);
        let is_other = row.acquisition.replace(write.row.acquisition) != Some(write.row.acquisition);
        let is_new = row.ticket.replace(write.row.ticket.get()) != Some(write.row.ticket.get()) && is_other;
        row.takes_part = write.row.state != State::Idle;
        if !row.takes_part && !self.idle_rows_stay {
            // It may arrive at once, also if no answer comes.
            row.acknowledged = None;
        }
        let floor = row.floor.filter(|floor| is_new && floor.until > now);
        if let Some(floor) = &mut row.floor {
            floor.until = self.later(now);
        }
        drop(inner);
        if let Some(floor) = floor.filter(|floor| self.demanding && write.row.ticket.get() <= floor.ticket) {
            self.oracle.complain(format!(
                "{actor:?} takes place {} and had seen {}, which was there before",
                write.row.ticket.get(),
                floor.ticket
            ));
        }
    }

    /// Notes that a quorum has what was sent at `sent`.
    pub(crate) fn acknowledged(&self, actor: Actor, key: &Key, write: &Write, sent: u64) {
        let mut inner = self.inner.lock();
        let place = Place { ticket: write.row.ticket.get(), until: self.later(sent) };
        let row = inner.row(key, actor);
        // The answer to a write may come when the write that leaves is on its way already: with that one the row may be gone.
        let is_there = row.takes_part && row.acquisition == Some(write.row.acquisition);
        let stays = self.idle_rows_stay || is_there && write.row.state != State::Idle;
        if stays && row.acknowledged.is_none_or(|before| before.ticket <= place.ticket) {
            row.acknowledged = Some(place);
        }
        let now = self.world.now();
        if let Some(waiting) = inner.waiting.get_mut(&write.row.acquisition) {
            waiting.arrived.get_or_insert(now);
        }
    }

    /// Notes that a client removes its row.
    pub(crate) fn erases(&self, actor: Actor, key: &Key) {
        self.inner.lock().row(key, actor).acknowledged = None;
    }

    /// Notes that a look begins.
    pub(crate) fn looks(&self, actor: Actor, key: &Key) -> Option<Shown> {
        let mut inner = self.inner.lock();
        if !inner.row(key, actor).takes_part {
            return None;
        }
        let others = inner.rows.iter().filter(|((name, other), _)| name == key.name() && *other != actor);
        Some(Shown(others.filter_map(|((_, other), row)| Some((*other, row.acknowledged?))).collect()))
    }

    /// Notes that a look has come back.
    pub(crate) fn has_looked(&self, actor: Actor, key: &Key, shown: Option<Shown>) {
        let Some(Shown(places)) = shown else { return };
        let now = self.world.now();
        let mut inner = self.inner.lock();
        // A row that was left during the look may be gone, where idle rows do not stay.
        let mut is_there = |other: Actor, place: &Place| {
            self.idle_rows_stay
                || inner.row(key, other).acknowledged.is_some_and(|still| still.ticket == place.ticket)
        };
        let places = places.iter().filter(|(other, place)| place.until > now && is_there(*other, place));
        let largest = places.map(|(_, place)| place.ticket).max();
        inner.row(key, actor).floor = largest.map(|ticket| Place { ticket, until: self.later(now) });
    }

    fn later(&self, time: u64) -> u64 {
        time + u64::try_from(self.lease.as_nanos()).unwrap_or(u64::MAX)
    }
}

impl Waiting {
    fn is_in_the_way_of(&self, other: &Self) -> bool {
        self.key == other.key && self.mode.conflicts_with(other.mode)
    }

    /// Returns whether both ask for the strict order, and this one is before the other one in it, whichever clocks it goes by: those of the
    /// clients, or that of the server.
    fn is_strictly_before(&self, other: &Self) -> bool {
        let (Some(own_wall), Some(other_wall)) = (self.strict, other.strict) else { return false };
        let before = i64::try_from(BEFORE.as_micros()).unwrap_or(i64::MAX);
        u128::from(other.began.saturating_sub(self.began)) > BEFORE.as_nanos()
            && other_wall - own_wall > before
    }
}

impl Inner {
    fn row(&mut self, key: &Key, actor: Actor) -> &mut Row {
        self.rows.entry((key.name().to_owned(), actor)).or_default()
    }
}
