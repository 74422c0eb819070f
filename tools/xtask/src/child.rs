//! Runs commands that end by themselves: in a process group of their own, and killed with all they started when their
//! time is over or the user presses Ctrl-C.

use std::{
    io::{PipeReader, Read, pipe},
    os::unix::process::CommandExt,
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, Signal, kill_process_group},
};

use crate::interrupt;

/// Runs a command with the output of this process.
pub(crate) fn run(command: &mut Command, limit: Option<Instant>) -> Result<ExitStatus> {
    Group::spawn(command)?.wait(limit)
}

/// Runs a command and gives its output to `sink`: one pipe for stdout and stderr, so that the order stays.
pub(crate) fn run_into(
    command: &mut Command,
    limit: Option<Instant>,
    sink: impl FnMut(&[u8]),
) -> Result<ExitStatus> {
    let (output, input) = pipe()?;
    command.stdout(input.try_clone()?).stderr(input);
    read_all(command, output, limit, sink)
}

/// Runs a command and gives its stdout to `sink`.
pub(crate) fn stdout_into(
    command: &mut Command,
    limit: Option<Instant>,
    sink: impl FnMut(&[u8]),
) -> Result<ExitStatus> {
    let (output, input) = pipe()?;
    command.stdout(input);
    read_all(command, output, limit, sink)
}

fn read_all(
    command: &mut Command,
    mut output: PipeReader,
    limit: Option<Instant>,
    mut sink: impl FnMut(&[u8]),
) -> Result<ExitStatus> {
    let group = Group::spawn(command);
    // The command keeps its copies of the writing end; with them open the pipe would never end.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut group = group?;
    let mut buffer = [0; 8192];
    let mut ended = None;
    while ended.is_none_or(|at: Instant| at.elapsed() < LEFTOVERS) {
        match read_some(&mut output, &mut buffer)? {
            Some(0) => break,
            Some(length) => sink(&buffer[..length]),
            None => {}
        }
        if ended.is_none() && group.look(limit)?.is_some() {
            ended = Some(Instant::now());
        }
    }
    group.wait(limit)
}

/// Reads what the command prints. Returns `None` if nothing came within one look, zero at the end.
fn read_some(output: &mut PipeReader, buffer: &mut [u8]) -> Result<Option<usize>> {
    let wait = Timespec { tv_sec: 0, tv_nsec: LOOK.subsec_nanos().into() };
    let ready = poll(&mut [PollFd::new(output, PollFlags::IN)], Some(&wait));
    match ready {
        Ok(0) | Err(rustix::io::Errno::INTR) => Ok(None),
        Ok(_) => Ok(Some(output.read(buffer)?)),
        Err(error) => Err(error.into()),
    }
}

#[derive(Debug)]
struct Group {
    leader: Child,
    name: String,
}

impl Group {
    fn spawn(command: &mut Command) -> Result<Self> {
        let name = command.get_program().to_string_lossy().into_owned();
        // A group that is not in the foreground is stopped when it reads from the terminal.
        let spawned = command.stdin(Stdio::null()).process_group(0).spawn();
        let leader = spawned.with_context(|| format!("cannot run {name}"))?;
        Ok(Self { leader, name })
    }

    fn wait(&mut self, limit: Option<Instant>) -> Result<ExitStatus> {
        loop {
            if let Some(status) = self.look(limit)? {
                return Ok(status);
            }
            thread::sleep(LOOK);
        }
    }

    fn look(&mut self, limit: Option<Instant>) -> Result<Option<ExitStatus>> {
        if let Some(status) = self.leader.try_wait()? {
            return Ok(Some(status));
        }
        interrupt::check()?;
        if limit.is_some_and(|limit| Instant::now() > limit) {
            bail!("{} was killed: it did not end in time", self.name);
        }
        Ok(None)
    }
}

impl Drop for Group {
    /// Kills the group, also after a normal end: the leader may have left processes behind.
    fn drop(&mut self) {
        if let Some(group) = i32::try_from(self.leader.id()).ok().and_then(Pid::from_raw) {
            // An error means that the group is empty already.
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.leader.wait();
    }
}

const LOOK: Duration = Duration::from_millis(50);

/// The time for which a process that outlives its leader may keep the output open.
const LEFTOVERS: Duration = Duration::from_secs(2);
