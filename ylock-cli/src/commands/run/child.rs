//! The command that runs under the lock.

use std::cell::Cell;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::rc::Rc;
use std::time::Duration;

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, getpgrp, kill_process, kill_process_group, test_kill_process_group,
    waitid,
};
use rustix::termios::tcgetpgrp;
use tokio::process::Command;
use tokio::time::{sleep, timeout};
use ylock::Token;

use super::shown;
use crate::arguments::RunArguments;
use crate::commands::signals::{Signals, stop_here};
use crate::exit::{Failed, LOST, NOT_EXECUTABLE, NOT_FOUND, Result, SIGNALLED};
use crate::output::say;

/// The pause between two looks whether the processes of a group have ended.
const LOOK: Duration = Duration::from_millis(20);

/// So long a command that the terminal has told to stop may take to do so.
const STOPPING: Duration = Duration::from_millis(300);

/// A command that was started.
pub(super) struct Child {
    process: tokio::process::Child,
    running: Rc<Running>,
}

/// A command, as signals reach it.
pub(super) struct Running {
    pid: Pid,
    /// True if it has a process group of its own: then signals go to all of the group. In the foreground of a terminal it has not, so that it may read
    /// from it, and is sent what is typed there by the terminal.
    has_group: bool,
    /// True if it was waited for. Another process may have its number by now.
    has_ended: Cell<bool>,
}

impl Child {
    /// Starts the command.
    pub(super) fn start(arguments: &RunArguments, token: Option<Token>) -> Result<Self> {
        let (program, rest) = arguments.command.split_first().expect("the arguments have a command");
        let key = &arguments.lock.key;
        let mut command = Command::new(program);
        command.args(rest).env("YLOCK_GROUP", key.group()).env("YLOCK_NAME", key.name());
        // One that was there is of a lock around this one.
        command.env_remove("YLOCK_TOKEN");
        command.envs(shown(token).map(|token| ("YLOCK_TOKEN", token)));
        let has_group = !is_in_foreground();
        if has_group {
            command.process_group(0);
        }
        let process = command.spawn().map_err(|error| {
            let code = if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_EXECUTABLE };
            Failed::new(code, format!("{}: {error}", program.to_string_lossy()))
        })?;
        let pid = process.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let pid = pid.ok_or_else(|| Failed::new(NOT_EXECUTABLE, "the command has no process"))?;
        Ok(Self { process, running: Rc::new(Running { pid, has_group, has_ended: Cell::new(false) }) })
    }

    /// Returns the command as signals reach it.
    pub(super) fn running(&self) -> &Rc<Running> {
        &self.running
    }

    /// Waits until it has ended. Returns the exit code for it.
    pub(super) async fn ended(&mut self) -> Result<u8> {
        let status = self.process.wait().await;
        self.running.has_ended.set(true);
        Ok(code(status?))
    }

    /// Waits as [`ended`](Self::ended) does, and stops the command when it has had the lock for as
    /// long as it may.
    pub(super) async fn ended_in_time(&mut self, arguments: &RunArguments) -> Result<u8> {
        let Some(longest) = arguments.max_hold else { return self.ended().await };
        if let Ok(ended) = timeout(longest, self.ended()).await {
            return ended;
        }
        let stopped = self.stop(arguments.grace).await;
        let longest = humantime::format_duration(longest);
        say(&format!(
            "the command has had the lock for {longest}, as long as --max-hold allows: it was sent TERM"
        ));
        stopped?;
        Err(Failed::new(LOST, ""))
    }

    /// Ends it, and with it the other processes of its group: by TERM, and after `grace` by KILL.
    /// Returns when they have ended.
    pub(super) async fn stop(&mut self, grace: Duration) -> Result<()> {
        let running = Rc::clone(&self.running);
        let ended = async {
            if !running.has_ended.get() {
                running.pass_on(Signal::TERM);
                self.ended().await?;
            }
            while running.has_others() {
                sleep(LOOK).await;
            }
            Ok(())
        };
        if let Ok(ended) = timeout(grace, ended).await {
            return ended;
        }
        running.send(Signal::KILL);
        say(&format!(
            "the command has not ended within {}: it was sent KILL",
            humantime::format_duration(grace)
        ));
        self.ended().await?;
        Ok(())
    }
}

impl Running {
    /// Returns whether it is sent this signal by `ylock`, and not by the terminal.
    pub(super) fn is_sent(&self, signal: Signal) -> bool {
        self.has_group || !Signals::comes_from_terminal(signal)
    }

    /// Stops the command and this process, until this one is told to go on: a command must not run while nothing renews its lock.
    pub(super) async fn stop_with_ylock(&self) {
        if !self.has_group {
            // If the terminal has sent the signal, the command has it, too, and may have something to do before it stops: it has a moment for that.
            // Any other sender has sent it to this process only.
            let _ = timeout(STOPPING, self.stopped()).await;
        }
        self.send(Signal::STOP);
        stop_here();
        self.send(Signal::CONT);
    }

    /// Waits until the command is stopped.
    async fn stopped(&self) {
        // It is not waited for by that.
        let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        while matches!(waitid(WaitId::Pid(self.pid), options), Ok(None)) {
            sleep(LOOK).await;
        }
    }

    /// Returns whether processes of its group are left.
    fn has_others(&self) -> bool {
        self.has_group && test_kill_process_group(self.pid).is_ok()
    }

    /// Sends a signal that a process which was stopped is to receive, too.
    pub(super) fn pass_on(&self, signal: Signal) {
        self.send(signal);
        if matches!(signal, Signal::HUP | Signal::INT | Signal::QUIT | Signal::TERM) {
            self.send(Signal::CONT);
        }
    }

    pub(super) fn send(&self, signal: Signal) {
        // It may have ended, and not be waited for yet: then there is nothing to send a signal to.
        let _ = if self.has_group {
            kill_process_group(self.pid, signal)
        } else if self.has_ended.get() {
            Ok(())
        } else {
            kill_process(self.pid, signal)
        };
    }
}

/// Returns whether this process is in the foreground of its terminal, if it has one.
fn is_in_foreground() -> bool {
    let terminal = File::open("/dev/tty");
    terminal.is_ok_and(|terminal| tcgetpgrp(terminal).is_ok_and(|foreground| foreground == getpgrp()))
}

/// Fails if there is no such program, before anything depends on it.
pub(super) fn find(program: &OsStr) -> Result<()> {
    let named = Path::new(program);
    let is_there = if program.as_bytes().contains(&b'/') {
        named.exists()
    } else {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|folder| folder.join(named).exists())
    };
    if is_there { Ok(()) } else { Err(Failed::new(NOT_FOUND, format!("{}: not found", named.display()))) }
}

fn code(status: ExitStatus) -> u8 {
    let by_signal = || status.signal().map(|signal| i32::from(SIGNALLED) + signal);
    status.code().or_else(by_signal).and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}
