//! The last run of a job: one key, which is replaced only as it was read, and has an etcd lease of its own.

use std::time::Duration;

use ylock_core::{Error, ErrorKind, JobRun, Key, Result};

use super::link::Link;
use super::store::{Condition, Entry, Fault, Keys, Look, Put, Step, Transaction, to_error};

/// The number of times that a run is stored if each time another client has written in between.
const ATTEMPTS: u32 = 8;

/// Returns the last run of the job of a key.
pub(crate) async fn last_run(link: &Link, key: &Key) -> Result<Option<JobRun>> {
    let stored = stored(link, link.names.run(key)).await.map_err(to_error)?;
    stored.map(|entry| read(&entry)).transpose()
}

/// Stores a run, unless there is a later one. Returns whether it is stored.
pub(crate) async fn store_run(link: &Link, key: &Key, run: &JobRun, kept: Duration) -> Result<bool> {
    let lease = link.grant(seconds(kept)).await.map_err(to_error)?;
    let replaced = store(link, link.names.run(key), run, lease).await;
    // The lease that the key does not have any more: this one, if the run is not stored, or that of the run before. If it is not known whether the
    // run is stored, nothing is taken away. A lease that is left ends by itself.
    let left = match &replaced {
        Ok(Stored::Replaced { lease }) => Some(*lease).filter(|lease| *lease != 0),
        Ok(Stored::Kept) | Err(Fault::Refused(_)) => Some(lease),
        Err(_) => None,
    };
    if let Some(left) = left {
        drop(link.revoke(left).await);
    }
    match replaced {
        Ok(stored) => Ok(matches!(stored, Stored::Replaced { .. })),
        Err(fault) => Err(to_error(fault)),
    }
}

/// What has become of a run.
enum Stored {
    /// It took the place of one with this lease; 0: of none.
    Replaced { lease: i64 },
    /// A later one stays.
    Kept,
}

async fn store(link: &Link, key: Vec<u8>, run: &JobRun, lease: i64) -> Result<Stored, Fault> {
    let value = run.to_text().into_bytes();
    for _ in 0..ATTEMPTS {
        let before = stored(link, key.clone()).await?;
        if let Some(entry) = &before
            && !run.replaces(&read(entry).map_err(Fault::Refused)?)
        {
            return Ok(Stored::Kept);
        }
        // At this revision only: a late copy of this request, after another one, changes nothing.
        let changed = before.as_ref().map_or(0, |entry| entry.changed);
        let put = Put { key: key.clone(), value: value.clone(), lease: Some(lease) };
        let transaction = Transaction {
            when: vec![Condition::ChangedAt(key.clone(), changed)],
            then: vec![Step::Put(put)],
            otherwise: vec![],
        };
        if link.transact("store_run", transaction).await?.held {
            return Ok(Stored::Replaced { lease: before.map_or(0, |entry| entry.lease) });
        }
    }
    let message = "other clients kept changing the last run of this job";
    Err(Fault::Refused(Error::new(ErrorKind::Unavailable, message).with_engine(crate::NAME)))
}

async fn stored(link: &Link, key: Vec<u8>) -> Result<Option<Entry>, Fault> {
    let mut outcome = link.transact("last_run", Transaction::looking([Look::at(Keys::one(key))])).await?;
    Ok(outcome.seen(0).entries.into_iter().next())
}

fn read(entry: &Entry) -> Result<JobRun> {
    let run = std::str::from_utf8(&entry.value).ok().and_then(JobRun::read);
    run.ok_or_else(|| {
        let (key, value) = (String::from_utf8_lossy(&entry.key), String::from_utf8_lossy(&entry.value));
        Error::new(ErrorKind::Unexpected, format!("the key {key} has no run of a job in it: {value:?}"))
    })
}

/// Returns for how many seconds a lease keeps a run: at least as long as it is to be kept.
fn seconds(kept: Duration) -> i64 {
    i64::try_from(kept.as_secs()).unwrap_or(i64::MAX).saturating_add(1).clamp(2, LONGEST)
}

/// The longest that servers grant, in seconds.
const LONGEST: i64 = 9_000_000_000;
