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
    let (mut has_ended, mut left) = (false, LEFTOVERS);
    while !left.is_zero() {
        let asked = Instant::now();
        match read_some(&mut output, &mut buffer)? {
            Some(0) => break,
            Some(length) => sink(&buffer[..length]),
            // Only such time counts: what has come is taken, however slowly the reader of our own output lets us.
            None if has_ended => left = left.saturating_sub(asked.elapsed()),
            None => {}
        }
        if has_ended {
            interrupt::check()?;
        } else {
            has_ended = group.look(limit)?.is_some();
        }
        if has_ended && limit.is_some_and(|limit| Instant::now() > limit) {
            break;
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

/// The time for which a process that outlives its leader may keep the output open without a word.
const LEFTOVERS: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    /// As much as the pipe holds is left when the command has ended.
    #[test]
    fn what_was_printed_is_read_to_its_end_also_slowly() {
        let mut length = 0;
        let slowly = |bytes: &[u8]| {
            length += bytes.len();
            thread::sleep(LEFTOVERS / 6);
        };
        let status = run_into(&mut sh("head -c 65000 /dev/zero"), None, slowly).unwrap();
        assert!(status.success());
        assert_eq!(length, 65_000);
    }

    #[test]
    fn what_outlives_the_command_is_not_waited_for_without_end() {
        let began = Instant::now();
        let mut printed = Vec::new();
        let sink = |bytes: &[u8]| printed.extend_from_slice(bytes);
        assert!(run_into(&mut sh("sleep 60 & echo here"), None, sink).unwrap().success());
        assert_eq!(printed, b"here\n");
        assert!(began.elapsed() < LEFTOVERS * 10);
        let until = Some(Instant::now() + LEFTOVERS / 2);
        assert!(run_into(&mut sh("yes & echo here"), until, |_| ()).unwrap().success());
        assert!(began.elapsed() < LEFTOVERS * 20);
    }
}
