//! One client of a folder: what its operations have in common.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use ylock_core::engine::Meter;
use ylock_core::environment::{BackgroundTask, Environment};
use ylock_core::queue::Now;
use ylock_core::{Error, ErrorKind, Key, Result};

use crate::REQUEST_TIMEOUT;
use crate::announcing::Announcing;
use crate::client_id::ClientId;
use crate::driver::{Busy, Folder, IfMissing, Locked, Pipe};
use crate::idle::Idle;
use crate::let_in::{Told, let_in};
use crate::message::Message;
use crate::options::FileOptions;
use crate::state::State;
use crate::waiters::Waiters;

/// How often a key is tried to lock at least before an operation counts as unanswered.
const LEAST_TRIES: u32 = 10;
/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The pause between two tries to lock a key, or to find the folder cleared.
const PAUSE: Duration = Duration::from_millis(1);

/// One client.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) id: ClientId,
    pub(crate) folder: Folder,
    pub(crate) environment: Arc<dyn Environment>,
    pub(crate) meter: Meter,
    pub(crate) waiters: Waiters,
    /// Open for as long as this client lives: others take that as its sign of life, so it belongs to no task.
    pub(crate) pipe: Pipe,
    pub(crate) background_task: BackgroundTask,
    pub(crate) idle: Idle,
    pub(crate) announcing: Announcing,
    /// Notified when the client is closed or dropped: ends the background task.
    pub(crate) closed: Arc<Notify>,
}

impl Client {
    pub(crate) async fn open(options: &FileOptions, environment: Arc<dyn Environment>) -> Result<Arc<Self>> {
        let folder = open_folder(options, &*environment).await?;
        let id = ClientId::draw(&*environment);
        let pipe = folder.make_pipe(id)?;
        let meter = Meter::of(crate::NAME, folder.path().display().to_string());
        let (waiters, background_task, idle, announcing, closed) = Default::default();
        Ok(Arc::new(Self {
            id,
            folder,
            environment,
            meter,
            waiters,
            pipe,
            background_task,
            idle,
            announcing,
            closed,
        }))
    }

    /// Changes a key. Returns nothing if another process is changing it.
    pub(crate) fn change<T>(
        &self,
        key: &Key,
        if_missing: IfMissing,
        work: impl FnOnce(&mut State, Now) -> Result<T>,
    ) -> Result<Option<T>> {
        self.folder
            .lock(key, if_missing)?
            .map(|locked| self.change_locked(locked, Some(key), work))
            .transpose()
    }

    /// Changes a key, as soon as no other process is changing it.
    ///
    /// # Errors
    /// `Unavailable` if another process has it locked for so long that it must be standing still.
    pub(crate) async fn change_soon<T>(
        &self,
        key: &Key,
        if_missing: IfMissing,
        work: impl FnOnce(&mut State, Now) -> Result<T>,
    ) -> Result<T> {
        let locked = self.soon(|| self.folder.lock(key, if_missing)).await?;
        self.change_locked(locked, Some(key), work)
    }

    /// Returns what `lock` returns, as soon as no other process has that file locked.
    ///
    /// # Errors
    /// As [`change_soon`](Self::change_soon).
    pub(crate) async fn soon<T>(&self, mut lock: impl FnMut() -> Result<Option<T>>) -> Result<T> {
        let (begun, mut tries) = (self.environment.now(), 0);
        loop {
            tries += 1;
            if let Some(locked) = lock()? {
                return Ok(locked);
            }
            // A time alone would say nothing: on a busy machine one try may take all of it.
            if tries >= LEAST_TRIES && self.environment.now().since(begun) >= REQUEST_TIMEOUT {
                return Err(Error::new(
                    ErrorKind::Unavailable,
                    "another process is in the middle of changing this lock, and does not go on: is it stopped?",
                ));
            }
            self.environment.sleep(PAUSE).await;
        }
    }

    /// Does `work` on the contenders that are not over, stores what has become of them, and tells those whose turn has come. If nothing is left to
    /// be remembered, the file of `idle`, its key, is left for a moment; without a key it is removed.
    pub(crate) fn change_locked<T>(
        &self,
        locked: Locked<'_>,
        idle: Option<&Key>,
        work: impl FnOnce(&mut State, Now) -> Result<T>,
    ) -> Result<T> {
        let mut state =
            State::read(locked.text(), locked.title()).ok_or_else(|| locked.damaged("it is not a lock's"))?;
        // After the file is locked: whatever this process waited for before, leases are counted from here.
        let now = Now::of(&*self.environment);
        state.queue.expire(now.moment);
        let result = work(&mut state, now)?;
        let told = if state.queue.take_freed() {
            let_in(&mut state, self.token_clock(now), now)
        } else {
            Told::new()
        };
        self.store(&locked, &state, idle, now)?;
        // Not before it is stored that they are inside. And when it is unlocked: some of them look at it at once, and a waker of this process
        // is its owner's code.
        drop(locked);
        told.into_iter().for_each(|(client, message)| self.tell(client, message));
        Ok(result)
    }

    fn store(&self, locked: &Locked<'_>, state: &State, idle: Option<&Key>, now: Now) -> Result<()> {
        let stays = || idle.is_some_and(|key| locked.has_file() && self.idle.keep(key, now.moment));
        if state.queue.is_empty() && !stays() && state.is_forgettable(self.folder.token_clock(micros(now))) {
            return locked.remove();
        }
        let text = state.to_text(locked.title());
        if text == locked.text() { Ok(()) } else { locked.write(&text) }
    }

    fn tell(&self, client: ClientId, message: Message) {
        if client == self.id { self.waiters.hear(message) } else { self.folder.tell(client, message) }
    }

    /// Returns the time from which tokens are counted.
    pub(crate) fn token_clock(&self, now: Now) -> u64 {
        self.folder.token_clock(micros(now))
    }
}

async fn open_folder(options: &FileOptions, environment: &dyn Environment) -> Result<Folder> {
    let begun = environment.now();
    loop {
        let now = Now::of(environment);
        let busy = match Folder::open(options, now.wall_micros, micros(now))? {
            Ok(folder) => return Ok(folder),
            Err(busy) => busy,
        };
        if now.moment.since(begun) >= CONNECT_TIMEOUT {
            return Err(still_busy(options, busy));
        }
        environment.sleep(PAUSE).await;
    }
}

fn still_busy(options: &FileOptions, busy: Busy) -> Error {
    let folder = options.folder().display();
    let message = match busy {
        Busy::Clearing => {
            format!("another client is clearing the folder {folder}, and does not go on: is it stopped?")
        }
        Busy::Replaced(count) => format!(
            "the file {folder}/layout was removed beside {count} clients that live, and whose locks this one would not see. End them; the next client \
             makes the file anew"
        ),
    };
    Error::new(ErrorKind::Unavailable, message)
}

impl Drop for Client {
    fn drop(&mut self) {
        self.closed.notify_one();
    }
}

/// Returns the microseconds since the machine was started.
pub(crate) fn micros(now: Now) -> u64 {
    now.moment.as_nanos() / 1000
}
