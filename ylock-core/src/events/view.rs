//! The view of a client that its layers have.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::client_name::ClientName;
use crate::environment::Environment;
use crate::mode::Mode;

/// The part of a client that its layers may see. The keeper shows it.
pub(crate) trait Viewed: Send + Sync {
    /// Returns the name of the client now.
    fn name(&self) -> ClientName;

    /// Returns the address of its store; `None` for a store inside this process.
    fn address(&self) -> Option<String>;

    /// Returns what the client holds and waits for now.
    fn usage(&self) -> Vec<GroupUsage>;

    /// Returns the client's source of time and tasks.
    fn environment(&self) -> Arc<dyn Environment>;
}

/// A client as its layers see it. It does not keep the client alive.
#[derive(Clone)]
pub struct ClientView {
    engine: &'static str,
    client: Weak<dyn Viewed>,
}

impl ClientView {
    pub(crate) fn new(engine: &'static str, client: Weak<dyn Viewed>) -> Self {
        Self { engine, client }
    }

    /// Returns the engine, in one word.
    pub fn engine(&self) -> &'static str {
        self.engine
    }

    /// Returns the name of the client now; `None` once the client is gone.
    pub fn name(&self) -> Option<ClientName> {
        self.client.upgrade().map(|client| client.name())
    }

    /// Returns the address of its store; `None` for a store inside this process, and once the client is gone.
    pub fn address(&self) -> Option<String> {
        self.client.upgrade().and_then(|client| client.address())
    }

    /// Returns whether this is the same client.
    pub fn is_same(&self, other: &Self) -> bool {
        self.client.ptr_eq(&other.client)
    }

    /// Returns what the client holds and waits for now, as [`Ylock::usage`](crate::Ylock::usage); `None` once the client is gone.
    pub fn usage(&self) -> Option<Vec<GroupUsage>> {
        self.client.upgrade().map(|client| client.usage())
    }

    /// Returns the client's source of time and tasks; `None` once the client is gone.
    pub fn environment(&self) -> Option<Arc<dyn Environment>> {
        self.client.upgrade().map(|client| client.environment())
    }
}

impl fmt::Debug for ClientView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientView").field("engine", &self.engine).finish_non_exhaustive()
    }
}

/// The usage of one group by a client: what it holds and waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GroupUsage {
    /// The group.
    pub group: Arc<str>,
    /// The number of owners that hold a lock as readers.
    pub held_read: usize,
    /// The number of owners that hold a lock as writers.
    pub held_write: usize,
    /// The number of acquisitions of readers that wait.
    pub waiting_read: usize,
    /// The number of acquisitions of writers that wait.
    pub waiting_write: usize,
    /// The time that the oldest hold has lasted. A hold that began before the client had its first layer has lasted this long at most.
    pub longest_hold: Duration,
    /// The time that the oldest waiter has waited.
    pub longest_wait: Duration,
    /// Releases that the store did not confirm at the first attempt, and that are tried again.
    pub releases_pending: usize,
}

impl GroupUsage {
    pub(crate) fn of(group: Arc<str>) -> Self {
        Self {
            group,
            held_read: 0,
            held_write: 0,
            waiting_read: 0,
            waiting_write: 0,
            longest_hold: Duration::ZERO,
            longest_wait: Duration::ZERO,
            releases_pending: 0,
        }
    }

    /// Returns the number of owners that hold a lock.
    pub fn held(&self) -> usize {
        self.held_read + self.held_write
    }

    /// Returns the number of acquisitions that wait.
    pub fn waiting(&self) -> usize {
        self.waiting_read + self.waiting_write
    }

    pub(crate) fn add_hold(&mut self, mode: Mode, age: Duration) {
        match mode {
            Mode::Read => self.held_read += 1,
            Mode::Write => self.held_write += 1,
        }
        self.longest_hold = self.longest_hold.max(age);
    }

    pub(crate) fn add_waiter(&mut self, mode: Mode, age: Duration) {
        match mode {
            Mode::Read => self.waiting_read += 1,
            Mode::Write => self.waiting_write += 1,
        }
        self.longest_wait = self.longest_wait.max(age);
    }
}
