//! A command that runs under a lock.

use std::{
    io::{BufRead, BufReader},
    process::{Child, ChildStdout, Command, Stdio},
};

use anyhow::{Context, Result, ensure};

/// A command that says when it has its lock, and gives it back when its input ends. Dropped, it is killed.
pub(super) struct Holder {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Holder {
    /// What runs under the lock, for a shell.
    pub(super) const COMMAND: &str = "echo in; cat > /dev/null";

    pub(super) fn begin(mut command: Command) -> Result<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let output = BufReader::new(child.stdout.take().context("it has an output")?);
        Ok(Self { child, output })
    }

    /// Waits until it has its lock.
    pub(super) fn inside(mut self) -> Result<Self> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        ensure!(line == "in\n", "a lock that is free was not given: {}", self.child.wait()?);
        Ok(self)
    }

    /// Returns whether it has ended.
    pub(super) fn has_ended(&mut self) -> Result<bool> {
        Ok(self.child.try_wait()?.is_some())
    }

    /// Waits until it has given its lock back.
    pub(super) fn leave(mut self) -> Result<()> {
        drop(self.child.stdin.take());
        let status = self.child.wait()?;
        ensure!(status.success(), "a holder ended with {status}");
        Ok(())
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // Errors mean that it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
