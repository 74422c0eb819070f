//! The last run of a job: a hash of its own beside that of the lock, in the same part of a cluster.

use std::time::Duration;

use ylock_core::{Error, ErrorKind, JobRun, Key, Result};

use crate::client::Client;
use crate::driver::{Call, scripts};
use crate::words;

/// Returns the last run of the job of a key.
pub(crate) async fn last_run(client: &Client, key: &Key) -> Result<Option<JobRun>> {
    let text = client.store.call(client.call_for_run(&scripts::LAST_RUN, key)).await?.word()?;
    if text.is_empty() {
        return Ok(None);
    }
    JobRun::read(&text).map(Some).ok_or_else(|| odd(&text))
}

/// Stores a run, unless there is a later one. Returns whether it is stored.
pub(crate) async fn store_run(client: &Client, key: &Key, run: &JobRun, kept: Duration) -> Result<bool> {
    let call = client.call_for_run(&scripts::STORE_RUN, key);
    let call = call.arg(run.to_text()).arg(JobRun::ORDERED).arg(millis(kept));
    // That work is done is stored whatever has become of the word that it was begun.
    let call = if run.is_done { call.arg(words::ACCEPTS) } else { call.arg(client.eviction).must_be_kept() };
    let (mut answer, reached) = client.store.call_replicated(call, client.min_replicas).await?;
    let is_stored = answer.flag()?;
    if is_stored && !reached {
        let message = format!("fewer than {} replicas have the run of this job", client.min_replicas);
        return Err(Error::new(ErrorKind::Indeterminate, message));
    }
    Ok(is_stored)
}

/// Returns the milliseconds, of which a part counts as a whole one.
fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX).saturating_add(1)
}

fn odd(text: &str) -> Error {
    Error::new(ErrorKind::Unexpected, format!("what is stored for this job is no run: {text:?}"))
}

impl Client {
    fn call_for_run(&self, script: &'static scripts::Script, key: &Key) -> Call {
        Call::at(script, self.place_of_run(key))
    }
}
