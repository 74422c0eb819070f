//! Waits for processes.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::Process;
use crate::{interrupt, tail};

/// Tries `check` again until it succeeds, or a process has ended, or the time is over.
pub(crate) fn until(processes: &[Process], check: impl Fn() -> Result<()>) -> Result<()> {
    until_within(PATIENCE, processes, check)
}

pub(crate) fn until_within(
    patience: Duration,
    processes: &[Process],
    check: impl Fn() -> Result<()>,
) -> Result<()> {
    let began = Instant::now();
    loop {
        // Looked at first: if the port was taken, another process may answer there.
        if let Some(ended) = processes.iter().find(|process| process.state().is_over()) {
            bail!("a process has ended; {}", tail::of_file(&ended.log()));
        }
        let Err(error) = check() else { return Ok(()) };
        if began.elapsed() > patience {
            let logs: Vec<_> = processes.iter().map(|process| process.log().display().to_string()).collect();
            bail!("not ready after {} s: {error:#}; see {}", patience.as_secs(), logs.join(", "));
        }
        interrupt::pause(Duration::from_millis(50))?;
    }
}

/// The time that most processes have to become ready. Generous: the machine may be compiling at the same time.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
