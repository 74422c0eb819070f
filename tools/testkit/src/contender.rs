//! A contender for a lock, in a task of its own.

use std::fmt;

use tokio::task::JoinHandle;
use ylock_core::{Guard, Mode, Owner, Result};

use super::client::Client;
use super::faults::Process;
use super::fixture::Fixture;
use super::waiting::{eventually, within};

/// A task that wants the lock of the fixture. Dropping it cancels the task, wherever it is, unless its process is dead.
pub struct Contender {
    owner: Owner,
    fixture: Fixture,
    process: Process,
    task: JoinHandle<Result<Guard>>,
}

impl Contender {
    /// Starts a task of its own owner.
    pub fn start(client: &Client, mode: Mode) -> Self {
        Self::start_as(client, mode, Owner::new())
    }

    /// Starts a task of this owner.
    pub fn start_as(client: &Client, mode: Mode, owner: Owner) -> Self {
        let lock = client.lock.owned_by(&owner);
        let task = tokio::spawn(async move {
            match mode {
                Mode::Read => lock.read().await,
                Mode::Write => lock.write().await,
            }
        });
        Self { owner, fixture: client.fixture().clone(), process: client.process().clone(), task }
    }

    /// Returns the owner that wants the lock.
    pub fn owner(&self) -> Owner {
        self.owner
    }

    /// Waits until this client sees the contender in the queue. Of another process only the first is visible.
    pub async fn seen_by(&self, client: &Client) {
        let seen = || async {
            assert!(!self.is_done(), "a contender that should wait got in");
            client.look().await.queue.iter().any(|waiter| waiter.owner == self.owner)
        };
        eventually(self.fixture.soon(), "the queue shows a contender that waits", seen).await;
    }

    /// Returns whether its wait is over.
    pub fn is_done(&self) -> bool {
        self.task.is_finished()
    }

    /// Waits for its guard, which it must get soon, and returns it.
    pub async fn guard(mut self) -> Guard {
        let granted = within(self.fixture.soon(), "a contender that waited gets in", &mut self.task).await;
        granted.expect("no panic").expect("a guard")
    }

    /// Gets in, soon, and gives the lock back at once.
    pub async fn visit(self) {
        drop(self.guard().await);
    }

    /// Returns what its wait ended with.
    pub async fn outcome(mut self) -> Result<Guard> {
        within(self.fixture.lapse(), "a contender that waited gets an answer", &mut self.task)
            .await
            .expect("no panic")
    }

    /// Stops waiting. Returns when the future is dropped.
    pub async fn cancel(mut self) {
        self.task.abort();
        let ended = within(self.fixture.soon(), "a cancelled task ends", &mut self.task).await;
        drop(ended);
    }
}

impl Drop for Contender {
    fn drop(&mut self) {
        // What waits in a process that is dead ends when that is buried: dropped before, it would be forgotten, with the session that it has.
        if !self.process.is_dead() {
            self.task.abort();
        }
    }
}

impl fmt::Debug for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Contender").field("owner", &self.owner).finish_non_exhaustive()
    }
}
