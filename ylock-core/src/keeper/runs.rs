//! The last runs of jobs, which the store keeps beside the locks.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{Keeper, closed};
use crate::error::Result;
use crate::foreign::shielded;
use crate::job_run::JobRun;
use crate::key::Key;

impl Keeper {
    /// Returns the last run of the job of this key.
    pub(crate) async fn last_run(&self, key: &Key) -> Result<Option<JobRun>> {
        self.check_open(key)?;
        shielded(self.engine.last_run(key)).await.map_err(|error| self.about(key, error))
    }

    /// Stores a run, unless the store has a later one. Returns whether it is stored.
    pub(crate) async fn store_run(&self, key: &Key, run: &JobRun, kept: Duration) -> Result<bool> {
        self.check_open(key)?;
        shielded(self.engine.store_run(key, run, kept)).await.map_err(|error| self.about(key, error))
    }

    fn check_open(&self, key: &Key) -> Result<()> {
        if self.closed.load(Ordering::SeqCst) { Err(self.about(key, closed())) } else { Ok(()) }
    }
}
