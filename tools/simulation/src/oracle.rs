//! The observer that sees everything, and says what must not be.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use ylock_core::environment::Environment;
use ylock_core::{Key, Mode, Owner};

use crate::belief::Belief;
use crate::clocks::Clocks;
use crate::world::World;

/// The observer; see the [module](self).
#[derive(Debug)]
pub struct Oracle {
    world: Arc<World>,
    /// False where the store gives out no tokens.
    has_tokens: bool,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    number: u64,
    entries: u64,
    holds: BTreeMap<u64, Hold>,
    places: BTreeMap<String, Place>,
    wrong: Vec<String>,
    /// The clocks of those that ran a job, by its name and the number of the period.
    runs: BTreeMap<(&'static str, u128), Arc<Clocks>>,
}

/// A lock that a client believes to hold.
#[derive(Debug)]
pub struct Hold {
    /// The key of the lock.
    pub key: Key,
    /// The mode in which it is held.
    pub mode: Mode,
    /// The owner: holders of one owner do not exclude each other.
    pub owner: Owner,
    /// The token, as a number: an engine's and a guard's are not compared with each other.
    pub token: u64,
    /// The clocks that the holder believes.
    pub clocks: Arc<Clocks>,
    /// The belief that it still holds.
    pub belief: Belief,
    /// True if the owner may have held it since an earlier entry, without being inside: one task has it for a set that is not whole yet, while
    /// another task of the same owner comes and goes.
    pub resumes: bool,
    /// The permit, if it is one of a semaphore whose name the key is.
    pub permit: Option<PermitOf>,
}

/// A permit of a semaphore.
#[derive(Clone, Copy, Debug)]
pub struct PermitOf {
    /// Which one; zero if that is not known.
    pub number: u32,
    /// The number of permits that its holder counts on.
    pub permits: u32,
}

/// An entry of a holder.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The number of the hold.
    pub number: u64,
    /// True if the same owner was inside under this token already: no entry of its own.
    pub reentrant: bool,
}

/// The knowledge of one lock: the tokens of all holders that entered, and the resource that the lock protects.
#[derive(Debug, Default)]
struct Place {
    /// The holds that entered, by owner and token, where they may be resumed.
    entered: BTreeSet<(Owner, u64)>,
    highest_write: Option<u64>,
    highest: Option<u64>,
    register: Register,
}

/// A resource of a careful user: it knows the highest tokens that came, and refuses a request that comes too late.
#[derive(Debug, Default)]
struct Register {
    value: u64,
    highest_write: Option<u64>,
    highest: Option<u64>,
}

impl Oracle {
    /// Creates an observer of a world in which nothing has happened.
    pub fn new(world: &Arc<World>, has_tokens: bool) -> Arc<Self> {
        Arc::new(Self { world: Arc::clone(world), has_tokens, inner: Mutex::default() })
    }

    /// Notes that a holder enters. Returns nothing if the hold is not valid any more by its own clock: then the holder does not rely on
    /// it.
    pub fn enter(&self, hold: Hold) -> Option<Entry> {
        if !hold.is_valid() {
            return None;
        }
        self.world.note(|| format!("{hold} ENTERS {}", hold.key.name()));
        let mut inner = self.inner.lock();
        let resumed = hold.resumes && !inner.place(&hold.key).entered.insert((hold.owner, hold.token));
        let reentrant = resumed || inner.holds.values().any(|other| other.shares_with(&hold));
        (inner.number, inner.entries) = (inner.number + 1, inner.entries + 1);
        let number = inner.number;
        inner.check_alone(&self.world, &hold);
        if let Some(permit) = hold.permit {
            inner.check_permits(&self.world, &hold, permit);
        } else if !reentrant && self.has_tokens {
            inner.check_token(&hold);
        }
        inner.holds.insert(number, hold);
        Some(Entry { number, reentrant })
    }

    /// Notes that the lease goes on. Returns whether the holder may rely on it: what has lapsed stays over, unless this client is
    /// `trusting`.
    pub fn renewed(&self, number: u64, belief: Belief, trusting: bool) -> bool {
        let mut inner = self.inner.lock();
        let Some(mut hold) = inner.holds.remove(&number) else { return false };
        let is_valid = trusting || hold.is_valid();
        if is_valid {
            hold.belief = hold.belief.or_later(belief);
            inner.check_alone(&self.world, &hold);
            inner.holds.insert(number, hold);
        }
        is_valid
    }

    /// Returns whether a holder that is inside may go on. If it may, it is checked again.
    pub fn relies(&self, number: u64) -> bool {
        let mut inner = self.inner.lock();
        let Some(hold) = inner.holds.remove(&number) else { return false };
        let is_valid = hold.is_valid();
        if is_valid {
            inner.check_alone(&self.world, &hold);
            if let Some(permit) = hold.permit {
                inner.check_permits(&self.world, &hold, permit);
            }
        }
        inner.holds.insert(number, hold);
        is_valid
    }

    /// Notes that a job is run for a period, which must not have been run before. A client whose clock stood still may do so: only what the lock
    /// protects is safe from it.
    pub fn runs(&self, job: &'static str, period: u128, clocks: &Arc<Clocks>) {
        let mut inner = self.inner.lock();
        let before = inner.runs.insert((job, period), Arc::clone(clocks));
        if let Some(before) = before.filter(|before| !before.stood_still() && !clocks.stood_still()) {
            let (one, other) = (before.actor(), clocks.actor());
            inner.wrong.push(format!("period {period} of {job} is run twice, by {one:?} and {other:?}"));
        }
    }

    /// Notes that a writer goes on as a reader.
    pub fn downgrade(&self, number: u64) {
        if let Some(hold) = self.inner.lock().holds.get_mut(&number) {
            hold.mode = Mode::Read;
        }
    }

    /// Notes that a holder leaves, and does not rely on the lock any more.
    pub fn leave(&self, number: u64) {
        if let Some(hold) = self.inner.lock().holds.remove(&number) {
            self.world.note(|| format!("{hold} LEAVES {}", hold.key.name()));
        }
    }

    /// Returns the token by which the oracle knows a holder. All are equal where the store gives out none, and then the resource cannot
    /// be protected.
    pub fn token(&self, given: Option<u64>) -> Option<u64> {
        if self.has_tokens { given } else { given.is_none().then_some(0) }
    }

    /// Reads the resource, with a token. Returns nothing if the token is too old, or there are none.
    pub fn read(&self, key: &Key, token: u64) -> Option<u64> {
        if !self.has_tokens {
            return None;
        }
        let mut inner = self.inner.lock();
        let register = &mut inner.place(key).register;
        if Some(token) < register.highest_write {
            return None;
        }
        register.highest = register.highest.max(Some(token));
        Some(register.value)
    }

    /// Writes one more than what was read, with a token.
    pub fn write(&self, key: &Key, token: u64, read: u64) {
        let mut inner = self.inner.lock();
        let register = &mut inner.place(key).register;
        if Some(token) < register.highest {
            return;
        }
        let value = std::mem::replace(&mut register.value, read + 1);
        (register.highest, register.highest_write) = (Some(token), Some(token));
        if value != read {
            inner.wrong.push(format!(
                "a lost update of {}: {read} was read and {value} overwritten with token {token}",
                key.name(),
            ));
        }
    }

    /// Records something that must not be.
    pub fn complain(&self, what: String) {
        self.inner.lock().wrong.push(what);
    }

    /// Returns how often a holder entered.
    pub fn entries(&self) -> u64 {
        self.inner.lock().entries
    }

    /// Returns everything that was wrong.
    pub fn wrong(&self) -> Vec<String> {
        self.inner.lock().wrong.clone()
    }
}

impl Inner {
    fn place(&mut self, key: &Key) -> &mut Place {
        self.places.entry(key.name().to_owned()).or_default()
    }

    /// Checks that no other holder that conflicts believes to hold the lock, and that every one that did has been told that it does
    /// not. A holder whose clock stood still may believe so: nothing is promised to it but its token.
    fn check_alone(&mut self, world: &World, hold: &Hold) {
        if hold.clocks.stood_still() {
            return;
        }
        let mut rivals = self.holds.values().filter(|other| {
            other.conflicts_with(hold) && world.is_alive(other.clocks.actor()) && !other.clocks.stood_still()
        });
        let wrong = rivals.find_map(|other| {
            if other.is_valid() {
                return Some(format!("two valid holders of {}: {hold} beside {other}", hold.key.name()));
            }
            // A process that does not run cannot be told.
            let unaware = !other.belief.is_told() && !world.is_paused(other.clocks.actor());
            unaware.then(|| format!("{other} was not told before {hold} got into {}", hold.key.name()))
        });
        self.wrong.extend(wrong);
    }

    /// Checks that no more have permits than there are, that each has another one, and that all count on the same number.
    fn check_permits(&mut self, world: &World, hold: &Hold, permit: PermitOf) {
        if hold.clocks.stood_still() {
            return;
        }
        let is_there = |other: &&Hold| {
            let is_unaware = !other.belief.is_told() && !world.is_paused(other.clocks.actor());
            other.is_valid() || is_unaware
        };
        let others = self.holds.values().filter(|other| other.key == hold.key);
        let others =
            others.filter(|other| world.is_alive(other.clocks.actor()) && !other.clocks.stood_still());
        let others: Vec<_> =
            others.filter(is_there).filter_map(|other| Some((other, other.permit?))).collect();
        let mut wrong = Vec::new();
        if others.len() >= permit.permits as usize {
            wrong.push(format!(
                "{} have one of {} permits: {hold} is too many",
                others.len() + 1,
                permit.permits
            ));
        }
        for (other, theirs) in others {
            if theirs.number == permit.number && permit.number > 0 {
                wrong.push(format!("two have permit {}: {hold} beside {other}", permit.number));
            }
            if theirs.permits != permit.permits {
                wrong.push(format!(
                    "{hold} counts on {} permits, {other} on {}",
                    permit.permits, theirs.permits
                ));
            }
        }
        self.wrong.extend(wrong);
    }

    /// Checks that the token is larger than that of every holder that conflicts and entered before.
    fn check_token(&mut self, hold: &Hold) {
        let (token, mode) = (Some(hold.token), hold.mode);
        let place = self.place(&hold.key);
        let floor = if mode == Mode::Write { place.highest } else { place.highest_write };
        place.highest = place.highest.max(token);
        if mode == Mode::Write {
            place.highest_write = place.highest_write.max(token);
        }
        if token <= floor && !hold.clocks.stood_still() {
            self.wrong.push(format!("the token of {hold} is not above {floor:?}"));
        }
    }
}

impl Hold {
    fn is_valid(&self) -> bool {
        self.belief.is_valid(self.clocks.now())
    }

    fn conflicts_with(&self, other: &Self) -> bool {
        self.key == other.key && self.owner != other.owner && self.mode.conflicts_with(other.mode)
    }

    /// Returns whether both are acquisitions under one hold of one owner.
    fn shares_with(&self, other: &Self) -> bool {
        (&self.key, self.owner, self.token) == (&other.key, other.owner, other.token)
    }
}

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {:?} token {}", self.clocks.actor(), self.mode, self.token)
    }
}
