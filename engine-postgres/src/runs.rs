//! The last run of a job: a row of its own.

use std::time::Duration;

use ylock_core::{Error, ErrorKind, JobRun, Key, Result};

use crate::client::Client;
use crate::driver::{Call, Function, Value};

/// Returns the last run of the job of a key.
pub(crate) async fn last_run(client: &Client, key: &Key) -> Result<Option<JobRun>> {
    let answer = client.store.call(Call::at(Function::LastRun, key)).await?;
    let Some(text) = answer.value::<Option<&str>>()? else { return Ok(None) };
    JobRun::read(text).map(Some).ok_or_else(|| odd(text))
}

/// Stores a run, unless there is a later one. Returns whether it is stored.
pub(crate) async fn store_run(client: &Client, key: &Key, run: &JobRun, kept: Duration) -> Result<bool> {
    let ordered = i32::try_from(JobRun::ORDERED).expect("the beginning of a run is short");
    let call = Call::at(Function::StoreRun, key).with(Value::text(run.to_text()));
    client.store.call(call.with(Value::Small(ordered)).time(kept)).await?.flag()
}

fn odd(text: &str) -> Error {
    Error::new(ErrorKind::Unexpected, format!("what is stored for this job is no run: {text:?}"))
}
