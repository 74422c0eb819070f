//! One client of a fixture.

use std::future::Future;
use std::ops::Deref;
use std::sync::Arc;

use ylock_core::engine::{AcquisitionId, Engine, Inspection};
use ylock_core::{Guard, Key, Lock, Mode, Options, Ylock};

use super::contender::Contender;
use super::faults::{KillableEngine, Process};
use super::fixture::Fixture;
use super::patient::answered;
use super::waiting::{eventually, within};

/// A client, and the one lock that most cases are about. Stands for a process: it can be paused and killed.
#[derive(Clone, Debug)]
pub struct Client {
    ylock: Ylock,
    /// The lock that most cases are about; the same for all clients of a fixture.
    pub lock: Lock,
    engine: Arc<dyn Engine>,
    process: Process,
    fixture: Fixture,
}

impl Client {
    pub(super) fn new<W>(fixture: &Fixture, options: Options, engine: Arc<dyn Engine>, wrap: W) -> Self
    where
        W: FnOnce(Arc<dyn Engine>) -> Arc<dyn Engine>,
    {
        let (killable, process) = KillableEngine::new(wrap(Arc::clone(&engine)));
        let ylock = Ylock::new(killable).with_options(options);
        let lock = ylock.lock(fixture.group(), "the lock");
        // The fixture keeps its clients, so a client must not keep the same fixture alive.
        Self { ylock, lock, engine, process, fixture: fixture.without_clients() }
    }

    /// Acquires the lock of the fixture, which must be free.
    #[track_caller]
    pub fn write(&self) -> impl Future<Output = Guard> {
        let granted = within(self.fixture.soon(), "a write lock is granted", self.lock.write());
        async { granted.await.expect("write") }
    }

    /// Acquires the lock of the fixture for reading, which must be possible now.
    #[track_caller]
    pub fn read(&self) -> impl Future<Output = Guard> {
        let granted = within(self.fixture.soon(), "a read lock is granted", self.lock.read());
        async { granted.await.expect("read") }
    }

    /// Acquires the lock of the fixture in this mode, which must be possible now.
    pub async fn acquire(&self, mode: Mode) -> Guard {
        match mode {
            Mode::Read => self.read().await,
            Mode::Write => self.write().await,
        }
    }

    /// Acquires the lock of the fixture in this mode, however long it takes; returns `None` if that fails.
    pub async fn acquire_whenever(&self, mode: Mode) -> Option<Guard> {
        match mode {
            Mode::Read => self.lock.read().await.ok(),
            Mode::Write => self.lock.write().await.ok(),
        }
    }

    /// Tries the lock of the fixture; again where a busy machine has not answered in time.
    #[track_caller]
    pub fn try_acquire(&self, mode: Mode) -> impl Future<Output = Option<Guard>> {
        let tried = within(self.fixture.soon(), "a try is answered", async move {
            match mode {
                Mode::Read => answered(|| self.lock.read().now()).await,
                Mode::Write => answered(|| self.lock.write().now()).await,
            }
        });
        async { tried.await.expect("try") }
    }

    /// Starts a task that wants the lock of the fixture, and returns when the queue shows it.
    pub async fn queue_up(&self, mode: Mode) -> Contender {
        let contender = Contender::start(self, mode);
        contender.seen_by(self).await;
        contender
    }

    /// Starts a task as by [`queue_up`](Self::queue_up), and returns when another client sees it too: its own client shows a waiter before the
    /// store knows of it.
    pub async fn queue_up_seen_by(&self, mode: Mode, other: &Self) -> Contender {
        let contender = self.queue_up(mode).await;
        contender.seen_by(other).await;
        contender
    }

    /// Returns the holders of the lock of the fixture and the waiters for it, as this client sees them.
    #[track_caller]
    pub fn look(&self) -> impl Future<Output = Inspection> {
        let key = self.key();
        let looked = within(self.fixture.soon(), "a client looks", async move {
            answered(|| self.ylock.inspect(key.group(), key.name())).await
        });
        async { looked.await.expect("inspect") }
    }

    /// Returns the holders of a lock and the waiters for it as this client sees them, in the group of the fixture; nothing while the store does not
    /// have all of them: a client shows its own waiter before the store knows of it, and until then another client's may go first. A store
    /// without an order need not show waiters.
    pub async fn look_when_stored(&self, name: &str) -> Option<Inspection> {
        let key = Key::new(self.fixture.group(), name).expect("a good name");
        let stored = ids(&self.engine.inspect(&key).await.ok()?);
        let seen = self.ylock.inspect(self.fixture.group(), name).await.ok()?;
        let all_are_stored = ids(&seen).iter().all(|id| stored.contains(id));
        (all_are_stored || !self.fixture.harness().guarantees().fair).then_some(seen)
    }

    /// Takes the lock of the fixture away from all holders.
    pub async fn take_away(&self) -> usize {
        let key = self.key();
        answered(|| self.ylock.revoke(key.group(), key.name())).await.expect("revoke")
    }

    /// Returns whether this client could write the lock of this name, in the group of the fixture, now.
    pub async fn is_free(&self, name: &str) -> bool {
        let lock = self.ylock.lock(self.fixture.group(), name);
        let tried = answered(|| lock.write().now());
        within(self.fixture.soon(), "a try is answered", tried).await.unwrap().is_some()
    }

    /// Waits until all locks of these names, in the group of the fixture, are free for others, with empty queues.
    pub async fn become_free(&self, names: &[&str]) {
        for name in names {
            let free = || async {
                let seen = answered(|| self.ylock.inspect(self.fixture.group(), *name)).await.unwrap();
                seen.holders.is_empty() && seen.queue.is_empty()
            };
            eventually(self.fixture.soon(), "it has no holders and no waiters", free).await;
        }
    }

    /// Returns the key of the lock of the fixture.
    pub fn key(&self) -> Key {
        self.lock.key().expect("the suite uses good names").clone()
    }

    /// Returns the engine itself, without what is between it and its client.
    pub fn engine(&self) -> &Arc<dyn Engine> {
        &self.engine
    }

    /// Returns the switch that pauses, resumes and kills this process.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// Ends the process as by `kill -9`: nothing that it has begun goes on, and nothing is given back.
    pub async fn crash(&self) {
        self.process.kill();
        self.fixture.harness().cut_off(&self.engine).await;
    }

    /// Returns the fixture that it belongs to.
    pub fn fixture(&self) -> &Fixture {
        &self.fixture
    }
}

fn ids(seen: &Inspection) -> Vec<AcquisitionId> {
    let holders = seen.holders.iter().map(|holder| holder.id);
    holders.chain(seen.queue.iter().map(|waiter| waiter.id)).collect()
}

impl Deref for Client {
    type Target = Ylock;

    fn deref(&self) -> &Ylock {
        &self.ylock
    }
}
