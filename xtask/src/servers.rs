//! The servers that one command needs, for as long as it needs them.

use std::env;

use anyhow::Result;

use crate::{cassandra::Cassandra, file_lock::FileLock, places::Places};

/// Stops, when dropped, what neither `up` asked for nor another run uses.
#[derive(Debug)]
pub(crate) struct Servers {
    places: Places,
    cassandra: Cassandra,
    usage: Option<FileLock>,
}

impl Servers {
    pub(crate) fn start(places: &Places) -> Result<Self> {
        let usage = FileLock::shared(&places.usage_lock())?;
        let servers = Self { places: places.clone(), cassandra: Cassandra::new(places), usage: Some(usage) };
        servers.cassandra.up(true, false)?;
        Ok(servers)
    }

    /// Waits until no other run uses them: for tests that break servers.
    pub(crate) fn alone(&mut self) -> Result<()> {
        // Ours is given up first. Two runs that both kept theirs would wait for each other for ever.
        self.usage = None;
        self.usage = Some(FileLock::exclusive(&self.places.usage_lock())?);
        // The other run may have been the last one, as far as it knew.
        self.cassandra.up(true, false)
    }

    pub(crate) fn environment(&self) -> Vec<(&'static str, String)> {
        let mut variables = self.cassandra.environment(true);
        variables.push(("YLOCK_CACHE", self.places.root().display().to_string()));
        if let Ok(xtask) = env::current_exe() {
            variables.push(("YLOCK_XTASK", xtask.display().to_string()));
        }
        variables
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.usage = None;
        let stopped = match FileLock::try_exclusive(&self.places.usage_lock()) {
            Ok(Some(_alone)) => self.cassandra.stop_unkept(),
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = stopped {
            eprintln!("the servers may still run, try `cargo xtask down`: {error:#}");
        }
    }
}

/// The user's own servers, named by himself: then ours are not started.
pub(crate) fn are_given() -> bool {
    env::var_os("YLOCK_TEST_CASSANDRA").is_some_and(|addresses| !addresses.is_empty())
}
