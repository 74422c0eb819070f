//! The last run of a job: one cell of the lock's partition, whose write timestamp is in the order of the runs. So a late write changes nothing, and
//! nothing need be compared and set in one step.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ylock_core::{Error, ErrorKind, JobRun, Key, Result};

use super::own_row::Client;

/// The longest TTL that Cassandra accepts, in seconds: twenty years.
const LONGEST_TTL: u64 = 20 * 365 * 24 * 3600;

/// Where the last runs of jobs are kept.
///
/// # Contract
/// - `write_run` returns `Ok` only when a quorum has the mutation; any error means *it may still happen, also later*.
/// - A `read_run` that starts after a `write_run` returned `Ok` shows what that has written, or what has been written with the same stamp or a
///   larger one, as long as its TTL lasts.
#[async_trait]
pub trait RunCell: fmt::Debug + Send + Sync + 'static {
    /// Reads the cell of a lock's partition.
    async fn read_run(&self, key: &Key) -> Result<Option<String>>;

    /// Writes the cell.
    async fn write_run(&self, key: &Key, run: &str, stamp: i64, ttl: u32) -> Result<()>;
}

/// Returns the last run of the job of a key.
pub(crate) async fn last_run(client: &Client, key: &Key) -> Result<Option<JobRun>> {
    let Some(text) = cell(client)?.read_run(key).await? else { return Ok(None) };
    JobRun::read(&text).map(Some).ok_or_else(|| {
        Error::new(ErrorKind::Unexpected, format!("what is stored for this job is no run: {text:?}"))
    })
}

/// Stores a run, unless there is a later one. Returns whether it is stored.
pub(crate) async fn store_run(client: &Client, key: &Key, run: &JobRun, kept: Duration) -> Result<bool> {
    // What a look shows has a stamp that is as large as that of any write that was answered. It tells one thing that stamps do not: of two runs
    // of one period, the token.
    if last_run(client, key).await?.is_some_and(|last| !run.replaces(&last)) {
        return Ok(false);
    }
    // The servers' clocks decide when the cell ends.
    let seconds = (kept + client.max_clock_skew).as_secs().saturating_add(1).min(LONGEST_TTL);
    let ttl = u32::try_from(seconds).unwrap_or(u32::MAX);
    cell(client)?.write_run(key, &run.to_text(), stamp(run), ttl).await?;
    Ok(true)
}

/// Returns the write timestamp of a run: larger for a later period, and in one period for a run that is done. Not the token: after the last tokens of a
/// name were forgotten, a token may be smaller. It is not in the future, so that an operator's deletion of the cell is later.
fn stamp(run: &JobRun) -> i64 {
    // No period is as short as a microsecond: a run that is done comes before the next period.
    run.period_micros().saturating_add(i64::from(run.is_done))
}

fn cell(client: &Client) -> Result<&Arc<dyn RunCell>> {
    client.runs.as_ref().ok_or_else(|| {
        Error::new(ErrorKind::Unsupported, "this client was made over a store that keeps no runs of jobs")
    })
}

#[cfg(test)]
mod tests {
    use ylock_core::{ClientName, Token};

    use super::*;

    #[test]
    fn stamps_are_in_the_order_of_periods_and_of_what_is_done_in_them() {
        let run =
            |period, token| JobRun::begun(period, Some(Token::from_number(token)), 0, ClientName::default());
        let in_order = [run(7000, 9), run(7000, 1).done(), run(8000, 2), run(8000, 2).done()];
        assert!(in_order.windows(2).all(|pair| stamp(&pair[0]) < stamp(&pair[1])));
        assert!(stamp(&run(i64::MAX, 1)) > 0);
    }
}
