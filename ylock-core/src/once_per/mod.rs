//! Jobs that at most one of many replicas runs in a period, also one that takes less time than their clocks differ.
//!
//! The store keeps the last run of the job, written by the holder of the write lock of its name *before* the work begins. See "Once per period" in
//! ARCHITECTURE.md for why no period is run twice.

mod completed;
mod job;
mod job_lease;
mod verdict;

use std::future::Future;
use std::panic::Location;

use crate::acquire::{give_back, stopped_if_lost, with_new_owner};
use crate::error::Result;
use crate::job_run::JobRun;
use crate::key::Key;
use crate::period::Period;
use crate::terms::Terms;

pub use completed::Completed;
use job::{Entered, Job};
pub use job_lease::JobLease;

/// What has become of a job in its period; from [`Locks::once_per`](crate::Locks::once_per).
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "run here, being run, or run")]
pub enum JobOutcome<T> {
    /// This call has run the work, which has returned this.
    Ran(T),
    /// Another call is at it.
    RunningElsewhere(JobRun),
    /// The work was run before, or a later period was. If the [run](JobRun) is of this period and not done, its process has died in the middle, has lost
    /// the lock, or the work has failed.
    AlreadyRun(JobRun),
}

impl<T> JobOutcome<T> {
    /// Returns what the work has returned; `None` if it was not run by this call.
    pub fn ran(self) -> Option<T> {
        match self {
            Self::Ran(output) => Some(output),
            Self::RunningElsewhere(_) | Self::AlreadyRun(_) => None,
        }
    }

    /// Returns the run of another call because of which this one has not run the work.
    pub fn other(&self) -> Option<&JobRun> {
        match self {
            Self::Ran(_) => None,
            Self::RunningElsewhere(run) | Self::AlreadyRun(run) => Some(run),
        }
    }
}

/// Runs `work` unless the period has been run.
#[track_caller]
pub(crate) fn once_per<W, F>(
    terms: &Terms,
    key: Result<Key>,
    period: Period,
    work: W,
) -> impl Future<Output = Result<JobOutcome<F::Output>>>
where
    W: FnOnce(JobLease) -> F,
    F: Future,
    F::Output: Completed,
{
    let at = Location::caller();
    async move {
        // Two calls of one owner would be inside together, and both find that the work was not run.
        let terms = with_new_owner(terms);
        let job = Job::new(&terms, key?, period)?;
        let guard = match job.enter(at).await? {
            Entered::ToDo(guard) => guard,
            Entered::Over(run) => return Ok(JobOutcome::AlreadyRun(run)),
            Entered::Running(run) => return Ok(JobOutcome::RunningElsewhere(run)),
        };
        let run = match job.begin(&guard).await? {
            Ok(run) => run,
            Err(later) => return Ok(JobOutcome::AlreadyRun(later)),
        };
        // After the store has the run, and not before: the next holder reads it.
        let scheduled = run.clone();
        let output = stopped_if_lost(&terms, &guard, |lease| work(JobLease::new(lease, scheduled))).await?;
        if output.is_done() {
            job.end(&guard, run).await;
        }
        give_back(&terms, guard).await;
        Ok(JobOutcome::Ran(output))
    }
}
