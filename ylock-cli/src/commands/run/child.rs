//! The command that runs under the lock.

use std::io::{self, IsTerminal};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::process::Command;
use tokio::time::timeout;
use ylock::Token;

use super::shown;
use crate::arguments::RunArguments;
use crate::commands::signals::Signals;
use crate::exit::{Failed, NOT_EXECUTABLE, NOT_FOUND, Result, SIGNALLED};

/// A command that was started.
pub(super) struct Child {
    process: tokio::process::Child,
    pid: Pid,
    /// True if it has a process group of its own: then signals go to all of the group. In a terminal it has not, so that it may read from it, and is
    /// sent what is typed there by the terminal.
    has_group: bool,
}

impl Child {
    /// Starts the command.
    pub(super) fn start(arguments: &RunArguments, token: Option<Token>) -> Result<Self> {
        let (program, rest) = arguments.command.split_first().expect("the arguments have a command");
        let key = &arguments.lock.0;
        let mut command = Command::new(program);
        command.args(rest).env("YLOCK_GROUP", key.group()).env("YLOCK_NAME", key.name());
        // One that was there is of a lock around this one.
        command.env_remove("YLOCK_TOKEN");
        command.envs(shown(token).map(|token| ("YLOCK_TOKEN", token)));
        let has_group = !io::stdin().is_terminal();
        if has_group {
            command.process_group(0);
        }
        let process = command.spawn().map_err(|error| {
            let code = if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_EXECUTABLE };
            Failed::new(code, format!("{}: {error}", program.to_string_lossy()))
        })?;
        let pid = process.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let pid = pid.ok_or_else(|| Failed::new(NOT_EXECUTABLE, "the command has no process"))?;
        Ok(Self { process, pid, has_group })
    }

    /// Waits until it has ended, and passes signals on to it meanwhile. Returns the exit code for it.
    pub(super) async fn ended(&mut self, signals: &mut Signals) -> Result<u8> {
        loop {
            let signal = tokio::select! {
                // No signal is sent to a process that has ended: another one may have its number by now.
                biased;
                status = self.process.wait() => return Ok(code(status?)),
                signal = signals.next() => signal,
            };
            if self.has_group || !Signals::comes_from_terminal(signal) {
                self.send(signal);
            }
        }
    }

    /// Ends it: by TERM, and after `grace` by KILL. Returns when it has ended.
    pub(super) async fn stop(&mut self, grace: Duration, signals: &mut Signals) -> Result<()> {
        self.send(Signal::TERM);
        if let Ok(ended) = timeout(grace, self.ended(signals)).await {
            return ended.map(|_| ());
        }
        eprintln!(
            "ylock: the command has not ended within {}: it is sent KILL",
            humantime::format_duration(grace)
        );
        self.send(Signal::KILL);
        self.process.wait().await?;
        Ok(())
    }

    fn send(&self, signal: Signal) {
        // It may have ended, and not be waited for yet: then there is nothing to send a signal to.
        let _ = if self.has_group {
            kill_process_group(self.pid, signal)
        } else {
            kill_process(self.pid, signal)
        };
    }
}

fn code(status: ExitStatus) -> u8 {
    let by_signal = || status.signal().map(|signal| i32::from(SIGNALLED) + signal);
    status.code().or_else(by_signal).and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}
