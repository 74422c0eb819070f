//! The time service of the thesis, section 5.4: one cell that shows the largest of all clients' clocks.

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use ylock_core::Result;
use ylock_core::environment::{BackgroundTask, BoxFuture, Environment};

/// The period at which each client tries to move the cell on; the thesis's figure.
const PERIOD: Duration = Duration::from_millis(500);

/// The one cell, read and written at quorum.
#[async_trait]
pub trait TimeCell: fmt::Debug + Send + Sync + 'static {
    /// Reads the time that the cell shows; nothing if no client ever wrote it.
    async fn read_time(&self) -> Result<Option<i64>>;

    /// Writes a time, with the same number as write timestamp: so the largest one stays.
    async fn write_time(&self, micros: i64) -> Result<()>;
}

/// A time that never decreases and that all clients share, in microseconds since 1970.
///
/// Each client writes its own clock to the cell twice a second if it is ahead, and reads the cell for a request. So the time is that of
/// the clock that is the furthest ahead, and *two requests can get the same time*: it moves on in steps.
///
/// # What it cannot do
/// If a clock runs ten minutes ahead and its client dies, no client moves the cell for ten minutes: time stands still (section 6 of the
/// thesis). A `HybridClock` goes on.
#[derive(Debug)]
pub struct GlobalTime {
    cell: Arc<dyn TimeCell>,
    environment: Arc<dyn Environment>,
    /// The largest time that was read or written; never decreases.
    latest: AtomicI64,
    background_task: BackgroundTask,
}

impl GlobalTime {
    /// Creates the time of this cell, which the caller must [keep going](Self::keep_going).
    pub fn new(cell: Arc<dyn TimeCell>, environment: Arc<dyn Environment>) -> Arc<Self> {
        Arc::new(Self {
            cell,
            environment,
            latest: AtomicI64::new(0),
            background_task: BackgroundTask::default(),
        })
    }

    /// Moves the cell on to the own clock, if that is ahead: Listing 8, `TryUpdateGlobalTime`.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn try_update(&self) -> Result<()> {
        let local_time = self.environment.wall_micros();
        let global_time = self.cell.read_time().await?;
        self.note(global_time);
        if global_time.is_none_or(|global_time| local_time > global_time) {
            self.cell.write_time(local_time).await?;
            self.note(Some(local_time));
        }
        Ok(())
    }

    /// Returns the current time, after reading the cell.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn current(&self) -> Result<i64> {
        let shown = self.cell.read_time().await?;
        if shown.is_none() {
            self.try_update().await?;
        }
        self.note(shown);
        Ok(self.latest())
    }

    /// Returns the latest time that this client knows of; zero before the cell was first read or written.
    pub fn latest(&self) -> i64 {
        self.latest.load(Ordering::Acquire)
    }

    /// Moves the cell on, again and again, as long as this object is referenced elsewhere.
    pub fn keep_going(self: &Arc<Self>) {
        let time = Arc::downgrade(self);
        let work = move || -> BoxFuture { Box::pin(keep_going(Weak::clone(&time))) };
        self.background_task.start(&self.environment, work);
    }

    fn note(&self, time: Option<i64>) {
        if let Some(time) = time {
            self.latest.fetch_max(time, Ordering::AcqRel);
        }
    }
}

async fn keep_going(time: Weak<GlobalTime>) {
    while let Some(time) = time.upgrade() {
        // What fails is tried again in half a second.
        drop(time.try_update().await);
        let pause = time.environment.sleep(PERIOD);
        drop(time);
        pause.await;
    }
}
