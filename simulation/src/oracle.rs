//! Whoever sees everything, and says what must not be.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use ylock_core::engine::Grant;
use ylock_core::environment::{Environment, Moment};
use ylock_core::{Key, Mode, Options, StoreToken};

use crate::clocks::Clocks;
use crate::world::{World, lock};

/// See the [module](self).
#[derive(Debug)]
pub struct Oracle {
    world: Arc<World>,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    number: u64,
    entries: u64,
    holds: BTreeMap<u64, Hold>,
    places: BTreeMap<String, Place>,
    wrong: Vec<String>,
}

/// What somebody believes to hold.
#[derive(Debug)]
struct Hold {
    key: Key,
    mode: Mode,
    token: StoreToken,
    clocks: Arc<Clocks>,
    valid_until: Moment,
}

/// What is known of one lock: the tokens of all who entered, and the resource that it protects.
#[derive(Debug, Default)]
struct Place {
    highest_write: Option<StoreToken>,
    highest: Option<StoreToken>,
    register: Register,
}

/// A resource of a careful user: it knows the highest tokens that came, and turns away whoever comes too late.
#[derive(Debug, Default)]
struct Register {
    value: u64,
    highest_write: Option<StoreToken>,
    highest: Option<StoreToken>,
}

impl Oracle {
    /// Nothing has happened.
    pub fn new(world: &Arc<World>) -> Arc<Self> {
        Arc::new(Self { world: Arc::clone(world), inner: Mutex::default() })
    }

    /// Somebody enters with this grant. Nothing if it is not valid any more by its own clock: then nobody relies on it.
    pub fn enter(&self, grant: &Grant, clocks: &Arc<Clocks>) -> Option<u64> {
        let valid_until = valid_until(grant, grant.sent);
        let token = grant.token?;
        if clocks.now() >= valid_until {
            return None;
        }
        self.world.note(|| {
            format!("{:?} ENTERS {} {:?} token {}", clocks.actor(), grant.key.name(), grant.mode, token.get())
        });
        let mut inner = lock(&self.inner);
        (inner.number, inner.entries) = (inner.number + 1, inner.entries + 1);
        let (number, key) = (inner.number, grant.key.clone());
        let hold = Hold { key, mode: grant.mode, token, clocks: Arc::clone(clocks), valid_until };
        inner.check_alone(&self.world, &hold);
        inner.check_token(&hold);
        inner.holds.insert(number, hold);
        Some(number)
    }

    /// The lease goes on. Answers whether the holder may rely on it: what has lapsed stays over,
    /// unless this client is `trusting`.
    pub fn renewed(&self, number: u64, grant: &Grant, sent: Moment, trusting: bool) -> bool {
        let mut inner = lock(&self.inner);
        let Some(mut hold) = inner.holds.remove(&number) else { return false };
        let is_valid = trusting || hold.clocks.now() < hold.valid_until;
        if is_valid {
            hold.valid_until = hold.valid_until.max(valid_until(grant, sent));
            inner.check_alone(&self.world, &hold);
            inner.holds.insert(number, hold);
        }
        is_valid
    }

    /// A writer goes on as a reader.
    pub fn downgrade(&self, number: u64) {
        if let Some(hold) = lock(&self.inner).holds.get_mut(&number) {
            hold.mode = Mode::Read;
        }
    }

    /// Somebody leaves, and does not rely on it any more.
    pub fn leave(&self, number: u64) {
        if let Some(hold) = lock(&self.inner).holds.remove(&number) {
            self.world.note(|| {
                format!("{:?} LEAVES {} token {}", hold.clocks.actor(), hold.key.name(), hold.token.get())
            });
        }
    }

    /// Reads the resource, with a token.
    pub fn read(&self, key: &Key, token: StoreToken) -> Option<u64> {
        let mut inner = lock(&self.inner);
        let register = &mut inner.place(key).register;
        if Some(token) < register.highest_write {
            return None;
        }
        register.highest = register.highest.max(Some(token));
        Some(register.value)
    }

    /// Writes one more than what was read, with a token.
    pub fn write(&self, key: &Key, token: StoreToken, read: u64) {
        let mut inner = lock(&self.inner);
        let register = &mut inner.place(key).register;
        if Some(token) < register.highest {
            return;
        }
        let value = std::mem::replace(&mut register.value, read + 1);
        (register.highest, register.highest_write) = (Some(token), Some(token));
        if value != read {
            inner.wrong.push(format!(
                "a lost update of {}: {read} was read and {value} overwritten with token {}",
                key.name(),
                token.get()
            ));
        }
    }

    /// Something that must not be.
    pub fn complain(&self, what: String) {
        lock(&self.inner).wrong.push(what);
    }

    /// How often somebody entered.
    pub fn entries(&self) -> u64 {
        lock(&self.inner).entries
    }

    /// Everything that was wrong.
    pub fn wrong(&self) -> Vec<String> {
        lock(&self.inner).wrong.clone()
    }
}

impl Inner {
    fn place(&mut self, key: &Key) -> &mut Place {
        self.places.entry(key.name().to_owned()).or_default()
    }

    /// Nobody else who conflicts believes to hold it. One whose clock stood still may: nothing is promised to it but its token.
    fn check_alone(&mut self, world: &World, hold: &Hold) {
        if hold.clocks.stood_still() {
            return;
        }
        let rival = self.holds.values().find(|other| {
            other.key == hold.key
                && other.mode.conflicts_with(hold.mode)
                && world.is_alive(other.clocks.actor())
                && !other.clocks.stood_still()
                && other.clocks.now() < other.valid_until
        });
        if let Some(other) = rival {
            let wrong = format!(
                "two valid holders of {}: {:?} {:?} token {} beside {:?} {:?} token {}",
                hold.key.name(),
                hold.clocks.actor(),
                hold.mode,
                hold.token.get(),
                other.clocks.actor(),
                other.mode,
                other.token.get(),
            );
            self.wrong.push(wrong);
        }
    }

    /// Its token is larger than that of everybody who conflicts and entered before.
    fn check_token(&mut self, hold: &Hold) {
        let (token, mode) = (Some(hold.token), hold.mode);
        let place = self.place(&hold.key);
        let floor = if mode == Mode::Write { place.highest } else { place.highest_write };
        place.highest = place.highest.max(token);
        if mode == Mode::Write {
            place.highest_write = place.highest_write.max(token);
        }
        if token <= floor && !hold.clocks.stood_still() {
            self.wrong.push(format!(
                "token {} of {:?} {mode:?} is not above {floor:?}",
                hold.token.get(),
                hold.clocks.actor()
            ));
        }
    }
}

fn valid_until(grant: &Grant, sent: Moment) -> Moment {
    let margin = Options::default().with_lease(grant.lease).margin();
    sent.plus(grant.lease.saturating_sub(margin))
}
