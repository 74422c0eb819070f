//! Starts and stops servers: processes that outlive the command that started them, known by a pid file.
//!
//! A pid is believed only while its process has our mark in its command line: pids are used again, and a pid file
//! may be older than the machine's last start.

use std::{
    fs::{self, File},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// Waits until a process that was stopped stands still, which is a little later. The tests use this module too.
#[path = "../../testkit/src/own_servers/standing.rs"]
#[allow(unreachable_pub, reason = "there it is public")]
mod standing;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ProcessState {
    Dead,
    /// The process can do nothing any more, but some of its threads are not gone yet, and with them its ports.
    Ending,
    Paused,
    Running,
}

impl ProcessState {
    pub(crate) fn is_over(self) -> bool {
        matches!(self, Self::Dead | Self::Ending)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Daemon {
    pid_file: PathBuf,
    /// A whole argument of the command line, which no other process has.
    mark: String,
}

impl Daemon {
    pub(crate) fn new(pid_file: PathBuf, mark: String) -> Self {
        Self { pid_file, mark }
    }

    pub(crate) fn start(&self, command: &mut Command, log: &Path) -> Result<()> {
        let log = File::options().create(true).append(true).open(log)?;
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        // A group of its own: Ctrl-C in the terminal is for xtask, which then stops its servers in order.
        let spawned = command.process_group(0).spawn();
        let mut child = spawned.with_context(|| format!("cannot run {}", command.get_program().display()))?;
        fs::write(&self.pid_file, format!("{}\n", child.id()))?;
        await_arguments(&mut child)?;
        // Reaps the process if it ends while we still run; no other thread waits for this one.
        thread::spawn(move || child.wait());
        Ok(())
    }

    pub(crate) fn state(&self) -> ProcessState {
        self.look().map_or(ProcessState::Dead, |(_, state)| state)
    }

    /// Returns the process of the pid file and its state, if the process is ours.
    fn look(&self) -> Option<(Pid, ProcessState)> {
        let pid: i32 = fs::read_to_string(&self.pid_file).ok()?.trim().parse().ok()?;
        let proc = PathBuf::from(format!("/proc/{pid}"));
        let command_line = fs::read(proc.join("cmdline")).ok()?;
        let stat = fs::read_to_string(proc.join("stat")).ok()?;
        // The name in parentheses may hold anything, so the state is looked for behind the last one.
        let fields: Vec<_> = stat.rsplit_once(") ")?.1.split(' ').collect();
        let (state, flags) = (*fields.first()?, fields.get(6)?.parse::<u32>().ok()?);
        let is_ours = command_line.split(|&byte| byte == 0).any(|argument| argument == self.mark.as_bytes());
        let state = match state {
            "Z" if fs::read_dir(proc.join("task")).ok()?.count() < 2 => ProcessState::Dead,
            // A process whose memory is gone has no command line that tells whether it is ours; it is waited for, not signalled.
            _ if command_line.is_empty() && flags & PF_EXITING != 0 => ProcessState::Ending,
            _ if !is_ours => ProcessState::Dead,
            "T" => ProcessState::Paused,
            _ => ProcessState::Running,
        };
        Pid::from_raw(pid).map(|pid| (pid, state))
    }

    pub(crate) fn signal(&self, signal: Signal) -> Result<()> {
        match self.look() {
            Some((pid, ProcessState::Paused | ProcessState::Running)) => {
                kill_process(pid, signal)?;
                if signal == Signal::STOP {
                    standing::await_standing(pid.as_raw_nonzero().get().unsigned_abs());
                }
                Ok(())
            }
            _ => bail!("the process is not running"),
        }
    }

    pub(crate) fn kill(&self) -> Result<()> {
        self.signal(Signal::KILL)?;
        self.await_end(GRACE)
    }

    /// Waits until nothing is left of a process that is ending.
    pub(crate) fn await_gone(&self) -> Result<()> {
        if self.state() == ProcessState::Ending { self.await_end(GRACE) } else { Ok(()) }
    }

    fn await_end(&self, time: Duration) -> Result<()> {
        let began = Instant::now();
        while self.state() != ProcessState::Dead {
            if began.elapsed() > time {
                bail!("the process of {} does not end", self.pid_file.display());
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

/// Waits until a new process has a command line: without one, for a moment, it would be taken for dead.
fn await_arguments(child: &mut Child) -> Result<()> {
    let command_line = PathBuf::from(format!("/proc/{}/cmdline", child.id()));
    while fs::read(&command_line).is_ok_and(|line| line.is_empty()) && child.try_wait()?.is_none() {
        thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// Asks all servers to end, and kills those that have not ended after a while.
pub(crate) fn stop_all(daemons: &[Daemon]) -> Result<()> {
    let alive: Vec<_> = daemons.iter().filter(|daemon| daemon.state() != ProcessState::Dead).collect();
    for daemon in &alive {
        // Errors mean that the process ended by itself in the meantime; its end is checked below.
        let _ = daemon.signal(Signal::TERM);
        // A paused process would not see the first signal.
        let _ = daemon.signal(Signal::CONT);
    }
    let began = Instant::now();
    for daemon in alive {
        if daemon.await_end(GRACE.saturating_sub(began.elapsed())).is_err() && daemon.kill().is_err() {
            daemon.await_end(GRACE)?;
        }
    }
    for daemon in daemons {
        let _ = fs::remove_file(&daemon.pid_file);
    }
    Ok(())
}

/// The time for an orderly end, and again for the system to clear away what is left of a process.
const GRACE: Duration = Duration::from_secs(10);

/// The kernel's flag of a process that is being cleared away.
const PF_EXITING: u32 = 0x4;
