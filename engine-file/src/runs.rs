//! The last run of a job: a file of its own, which outlives the clients. It is read, compared and written while it is locked.

use std::time::Duration;

use ylock_core::queue::Now;
use ylock_core::{ErrorKind, JobRun, Key, Result};

use crate::client::Client;
use crate::driver::{FileName, IfMissing, Locked, Shelf};

/// The first words of the first line, and the version of this text.
const BEGIN: &str = "ylock run 1 ";
const UNTIL: &str = "until ";
/// After so many files other tasks have their turn.
const AT_ONCE: usize = 32;

/// What a file says: the run, and until when it is kept, by the clock of the tokens. That goes on from one run of the machine to the next, as the
/// file may.
#[derive(Debug, PartialEq, Eq)]
struct Stored {
    run: JobRun,
    until: u64,
}

impl Stored {
    /// Reads the text of the file with this title. `None` if this is not such a text, or is that of another key.
    fn read(text: &str, title: &str) -> Option<Self> {
        let (first, rest) = text.split_once('\n')?;
        if first.strip_prefix(BEGIN)? != title {
            return None;
        }
        let (until, run) = rest.split_once('\n')?;
        let until = until.strip_prefix(UNTIL)?.parse().ok()?;
        Some(Self { run: JobRun::read(run.strip_suffix('\n')?)?, until })
    }

    fn to_text(&self, title: &str) -> String {
        format!("{BEGIN}{title}\n{UNTIL}{}\n{}\n", self.until, self.run.to_text())
    }
}

/// Returns the last run of the job of a key.
pub(crate) async fn last_run(client: &Client, key: &Key) -> Result<Option<JobRun>> {
    let read = async {
        client.folder.check_runs_are_there()?;
        let locked = client.soon(|| client.folder.lock_run(key, IfMissing::Leave)).await?;
        kept(&locked, now(client))
    };
    client.meter.measure(&*client.environment, "last_run", read).await
}

/// Stores a run, unless there is a later one. Returns whether it is stored.
pub(crate) async fn store_run(client: &Client, key: &Key, run: &JobRun, keep: Duration) -> Result<bool> {
    let stored = async {
        client.folder.check_runs_are_there()?;
        let locked = client.soon(|| client.folder.lock_run(key, IfMissing::Create)).await?;
        let now = now(client);
        if kept(&locked, now)?.is_some_and(|last| !run.replaces(&last)) {
            return Ok(false);
        }
        let until = now.saturating_add(u64::try_from(keep.as_micros()).unwrap_or(u64::MAX));
        // Before the job begins: after a power cut it would run again in its period.
        locked.write_through(&Stored { run: run.clone(), until }.to_text(locked.title()))?;
        Ok(true)
    };
    client.meter.measure(&*client.environment, "store_run", stored).await
}

/// Removes the files of runs that are not kept any more.
pub(crate) async fn sweep(client: &Client) -> Result<()> {
    for (count, file) in client.folder.files(Shelf::Runs)?.into_iter().enumerate() {
        if count % AT_ONCE == AT_ONCE - 1 {
            tokio::task::yield_now().await;
        }
        match remove_if_over(client, file) {
            // Of a damaged one nothing is known: it stays, for the error that says so.
            Err(error) if error.kind() != ErrorKind::Unexpected => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn remove_if_over(client: &Client, file: FileName) -> Result<()> {
    match client.folder.lock_found(file)? {
        // Under the lock: a run that is stored meanwhile would be removed.
        Some(locked) if kept(&locked, now(client))?.is_none() => locked.remove(),
        _ => Ok(()),
    }
}

/// Returns the run of a file, if it is still kept.
fn kept(locked: &Locked<'_>, now: u64) -> Result<Option<JobRun>> {
    if locked.text().is_empty() {
        return Ok(None);
    }
    let stored = Stored::read(locked.text(), locked.title());
    let stored = stored.ok_or_else(|| locked.damaged("it is not that of a job"))?;
    Ok((stored.until > now).then_some(stored.run))
}

fn now(client: &Client) -> u64 {
    client.token_clock(Now::of(&*client.environment))
}

#[cfg(test)]
mod tests {
    use ylock_core::{ClientName, Token};

    use super::*;

    #[test]
    fn a_run_comes_back_from_its_file_and_from_no_other() {
        let run = JobRun::begun(7, Some(Token::from_number(8)), 9, ClientName::stored("web-3"));
        let text = Stored { run: run.clone(), until: 10 }.to_text("jobs=report");
        assert_eq!(Stored::read(&text, "jobs=report"), Some(Stored { run, until: 10 }));
        assert_eq!(Stored::read(&text, "jobs=other"), None);
        assert_eq!(Stored::read(&text.replace("until", "to"), "jobs=report"), None);
        assert_eq!(Stored::read(&text[..text.len() - 1], "jobs=report"), None);
    }
}
