//! One client on a stage.

use std::future::Future;
use std::ops::Deref;
use std::sync::Arc;

use crate::client::Ylock;
use crate::engine::{Engine, Inspection};
use crate::guard::Guard;
use crate::key::Key;
use crate::lock::Lock;
use crate::mode::Mode;
use crate::options::Options;

use super::contender::Contender;
use super::faults::{KillableEngine, Life};
use super::stage::Stage;
use super::waiting::within;

/// A client, and the one lock that most cases are about. Stands for a process: it can be paused and killed.
#[derive(Clone, Debug)]
pub struct Client {
    ylock: Ylock,
    /// The lock that most cases are about; the same for all clients of a stage.
    pub lock: Lock,
    engine: Arc<dyn Engine>,
    life: Life,
    stage: Stage,
}

impl Client {
    pub(super) fn new<W>(stage: &Stage, options: Options, engine: Arc<dyn Engine>, wrap: W) -> Self
    where
        W: FnOnce(Arc<dyn Engine>) -> Arc<dyn Engine>,
    {
        let (mortal, life) = KillableEngine::new(wrap(Arc::clone(&engine)));
        let ylock = Ylock::new(mortal).with_options(options);
        let lock = ylock.lock(stage.group(), "the lock");
        // The stage keeps its clients, so a client must not keep the same stage alive.
        Self { ylock, lock, engine, life, stage: stage.without_clients() }
    }

    /// Acquires the lock of the stage, which must be free.
    #[track_caller]
    pub fn write(&self) -> impl Future<Output = Guard> {
        let granted = within(self.stage.soon(), "a write lock is granted", self.lock.write());
        async { granted.await.expect("write") }
    }

    /// Acquires the lock of the stage for reading, which must be possible now.
    #[track_caller]
    pub fn read(&self) -> impl Future<Output = Guard> {
        let granted = within(self.stage.soon(), "a read lock is granted", self.lock.read());
        async { granted.await.expect("read") }
    }

    /// Acquires the lock of the stage in this mode, which must be possible now.
    pub async fn acquire(&self, mode: Mode) -> Guard {
        match mode {
            Mode::Read => self.read().await,
            Mode::Write => self.write().await,
        }
    }

    /// Acquires the lock of the stage in this mode, however long it takes; returns `None` if that fails.
    pub async fn acquire_whenever(&self, mode: Mode) -> Option<Guard> {
        match mode {
            Mode::Read => self.lock.read().await.ok(),
            Mode::Write => self.lock.write().await.ok(),
        }
    }

    /// Tries the lock of the stage.
    #[track_caller]
    pub fn try_acquire(&self, mode: Mode) -> impl Future<Output = Option<Guard>> {
        let tried = within(self.stage.soon(), "a try is answered", async move {
            match mode {
                Mode::Read => self.lock.try_read().await,
                Mode::Write => self.lock.try_write().await,
            }
        });
        async { tried.await.expect("try") }
    }

    /// Starts a task that wants the lock of the stage, and returns when the queue shows it.
    pub async fn queue_up(&self, mode: Mode) -> Contender {
        let contender = Contender::start(self, mode);
        contender.seen_by(self).await;
        contender
    }

    /// Returns the holders of the lock of the stage and the waiters for it, as this client sees them.
    #[track_caller]
    pub fn look(&self) -> impl Future<Output = Inspection> {
        let key = self.key();
        let looked = within(self.stage.soon(), "a client looks", async move {
            self.ylock.inspect(key.group(), key.name()).await
        });
        async { looked.await.expect("inspect") }
    }

    /// Takes the lock of the stage away from all holders.
    pub async fn take_away(&self) -> usize {
        let key = self.key();
        self.ylock.revoke(key.group(), key.name()).await.expect("revoke")
    }

    /// Returns the key of the lock of the stage.
    pub fn key(&self) -> Key {
        self.lock.key().expect("the suite uses good names").clone()
    }

    /// Returns the engine itself, without what is between it and its client.
    pub fn engine(&self) -> &Arc<dyn Engine> {
        &self.engine
    }

    /// Returns the switch that pauses, resumes and kills this process.
    pub fn life(&self) -> &Life {
        &self.life
    }

    /// Ends the process as by `kill -9`: nothing that it has begun goes on, and nothing is given back.
    pub async fn crash(&self) {
        self.life.kill();
        self.stage.harness().cut_off(&self.engine).await;
    }

    /// Returns the stage that it plays on.
    pub fn stage(&self) -> &Stage {
        &self.stage
    }
}

impl Deref for Client {
    type Target = Ylock;

    fn deref(&self) -> &Ylock {
        &self.ylock
    }
}
