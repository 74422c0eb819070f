//! One process of a store: its folder, its port, its log.

use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use crate::daemon::{Daemon, ProcessState};

/// The ports that no other process of the tests chooses. The tests use this module too.
#[allow(unreachable_pub, reason = "public where it is at home")]
#[path = "../../../testkit/src/own_servers/ports.rs"]
mod ports;

#[derive(Clone, Debug)]
pub(crate) struct Process {
    folder: PathBuf,
    mark: String,
}

impl Process {
    /// Creates a process that is not started yet. `mark` is a whole argument of its command line, which no other process has.
    pub(crate) fn new(folder: PathBuf, mark: String) -> Self {
        Self { folder, mark }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    pub(crate) fn daemon(&self) -> Daemon {
        Daemon::new(self.folder.join("pid"), self.mark.clone())
    }

    pub(crate) fn state(&self) -> ProcessState {
        self.daemon().state()
    }

    /// Returns the port at which clients reach the process.
    pub(crate) fn port(&self) -> Result<u16> {
        let file = self.folder.join("port");
        let port = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        port.trim().parse().with_context(|| format!("there is no port in {}", file.display()))
    }

    /// Removes a file or folder that the process left when it ran before.
    pub(crate) fn forget(&self, what: &str) -> Result<()> {
        let path = self.folder.join(what);
        let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        match removed {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot remove {}", path.display()))
            }
            _ => Ok(()),
        }
    }

    /// Writes a file into the folder of the process, and returns the path of the file.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let file = self.folder.join(name);
        fs::create_dir_all(file.parent().unwrap_or(&self.folder))?;
        fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
        Ok(file)
    }

    pub(crate) fn start(&self, command: &mut Command, port: u16) -> Result<()> {
        // If the start fails, the end of the log is shown, which must not be from an earlier start.
        self.forget("log")?;
        self.write("port", &port.to_string())?;
        self.daemon().start(command, &self.log())
    }
}

/// Returns the addresses of processes in the form that tests read.
pub(crate) fn addresses(processes: &[Process]) -> Result<String> {
    let address = |process: &Process| Ok(format!("127.0.0.1:{}", process.port()?));
    Ok(processes.iter().map(address).collect::<Result<Vec<_>>>()?.join(","))
}

/// Returns ports that are free, no two of them the same.
pub(crate) fn free_ports<const COUNT: usize>() -> [u16; COUNT] {
    std::array::from_fn(|_| ports::free_port_of(ports::OF_XTASK, "127.0.0.1"))
}
