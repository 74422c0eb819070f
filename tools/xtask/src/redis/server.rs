//! Runs one `redis-server`, of whatever kind.

use std::{path::PathBuf, process::Command};

use anyhow::{Result, bail};

use super::{answer::ask, program};
use crate::store::{Process, until};

#[derive(Clone, Debug)]
pub(super) struct Server {
    process: Process,
}

impl Server {
    pub(super) fn new(folder: PathBuf) -> Self {
        // Every server has its folder as an argument.
        let mark = folder.display().to_string();
        Self { process: Process::new(folder, mark) }
    }

    pub(super) fn process(&self) -> &Process {
        &self.process
    }

    /// Starts a server that keeps nothing on disk.
    pub(super) fn start(&self, port: u16, more: &[&str]) -> Result<()> {
        let mut command = Command::new(program()?);
        command.args([
            "--port",
            &port.to_string(),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            "no",
        ]);
        // Data that a replica was sent would be loaded at the next start, perhaps as a master.
        self.process.forget("dump.rdb")?;
        command.args(["--rdb-del-sync-files", "yes"]).args(more);
        self.run(command, port)
    }

    /// Starts a Sentinel, which needs a file that it may write.
    pub(super) fn start_sentinel(&self, port: u16, configuration: &str) -> Result<()> {
        let file = self.process.write("sentinel.conf", configuration)?;
        let mut command = Command::new(program()?);
        command.arg(file).arg("--sentinel");
        self.run(command, port)
    }

    fn run(&self, mut command: Command, port: u16) -> Result<()> {
        command.arg("--dir").arg(self.process.folder());
        // Otherwise the command line would not show the folder, by which the process is known.
        command.args(["--set-proc-title", "no"]);
        self.process.start(&mut command, port)
    }

    pub(super) fn await_answer(&self) -> Result<()> {
        until(std::slice::from_ref(&self.process), || self.check_answer())
    }

    pub(super) fn check_answer(&self) -> Result<()> {
        match ask(self.process.port()?, "PING")?.text()? {
            "PONG" => Ok(()),
            other => bail!("Redis answers {other}"),
        }
    }
}
