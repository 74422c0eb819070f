//! What the work of a job is given.

use std::ops::Deref;

use crate::job_run::JobRun;
use crate::lease::Lease;

/// The lease under which the work of a job is done, and the run that the work is: for which period. Everything that can be asked about the lock is
/// on [`Lease`], to which this dereferences.
#[derive(Clone, Debug)]
pub struct JobLease {
    lease: Lease,
    run: JobRun,
}

impl JobLease {
    pub(super) fn new(lease: Lease, run: JobRun) -> Self {
        Self { lease, run }
    }

    /// Returns the run: it says when the [period](JobRun::period) begins that the work is for. That is not the present period where the call has waited
    /// for long.
    pub fn run(&self) -> &JobRun {
        &self.run
    }

    /// Returns a view of the lock, to pass around.
    pub fn lease(&self) -> Lease {
        self.lease.clone()
    }
}

impl Deref for JobLease {
    type Target = Lease;

    fn deref(&self) -> &Lease {
        &self.lease
    }
}
