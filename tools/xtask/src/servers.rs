//! Runs the servers that one command needs, for as long as the command needs them.

use std::env;

use anyhow::Result;

use crate::{
    engine::Engine,
    file_lock::FileLock,
    places::Places,
    store::{Stores, Variable},
};

/// The servers of one command. When dropped, it stops the servers that neither `up` asked for nor another run uses.
#[derive(Debug)]
pub(crate) struct Servers {
    places: Places,
    engines: Vec<(&'static Engine, Stores)>,
    usage: Option<FileLock>,
}

impl Servers {
    /// Starts the servers of these engines, except those that the user has named in variables.
    pub(crate) fn start(places: &Places, engines: &[&'static Engine]) -> Result<Self> {
        let usage = FileLock::shared(&places.usage_lock())?;
        let engines = engines.iter().map(|&engine| (engine, engine.stores(places).without_given()));
        let servers = Self { places: places.clone(), engines: engines.collect(), usage: Some(usage) };
        servers.up()?;
        Ok(servers)
    }

    /// Waits until no other run uses the servers: for tests that break servers.
    pub(crate) fn alone(&mut self) -> Result<()> {
        // The shared lock is given up first. Two runs that both kept their shared lock would wait for each other for ever.
        self.usage = None;
        self.usage = Some(FileLock::exclusive(&self.places.usage_lock())?);
        // The other run may have been the last one, as far as it knew, and have stopped the servers.
        self.up()
    }

    pub(crate) fn environment(&self) -> Result<Vec<Variable>> {
        let mut variables = Vec::new();
        for (engine, stores) in &self.engines {
            variables.extend(stores.environment()?);
            variables.extend((engine.own_servers)(&self.places)?);
        }
        variables.push(("YLOCK_TEST_URLS", self.urls()?.join(" ")));
        variables.push(("YLOCK_CACHE", self.places.root().display().to_string()));
        if let Ok(xtask) = env::current_exe() {
            variables.push(("YLOCK_XTASK", xtask.display().to_string()));
        }
        Ok(variables)
    }

    /// Returns a URL of each engine, for programs that try it out.
    pub(crate) fn urls(&self) -> Result<Vec<String>> {
        self.engines.iter().map(|(engine, _)| engine.url(&self.places)).collect()
    }

    fn up(&self) -> Result<()> {
        self.engines.iter().try_for_each(|(_, stores)| stores.up(false))
    }

    fn stop_unkept(&self) -> Result<()> {
        self.engines.iter().try_for_each(|(_, stores)| stores.stop_unkept())
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.usage = None;
        let stopped = match FileLock::try_exclusive(&self.places.usage_lock()) {
            Ok(Some(_alone)) => self.stop_unkept(),
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = stopped {
            eprintln!("the servers may still run; stop them with `cargo xtask down`: {error:#}");
        }
    }
}
