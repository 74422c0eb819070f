//! Runs stores of one or several processes, each known to tests by one variable: started, kept and stopped as a whole.

mod process;
mod ready;
mod start;

use std::{env, fmt::Debug, fs, path::PathBuf};

use anyhow::Result;

pub(crate) use self::{
    process::{Process, addresses, free_ports},
    ready::until,
};
use crate::{
    daemon::{self, Life},
    file_lock::FileLock,
    places::Places,
    progress::Step,
};

pub(crate) trait Store: Debug + Send + Sync {
    /// Returns the name in messages.
    fn name(&self) -> &'static str;

    /// Returns the environment variable that holds the store's address.
    fn variable(&self) -> &'static str;

    fn folder(&self) -> PathBuf;

    fn processes(&self) -> Vec<Process>;

    /// Installs and fetches what `start` needs. Never called for two stores at once.
    fn prepare(&self) -> Result<()>;

    /// Starts all processes, on free ports and without the data of earlier runs.
    fn start(&self) -> Result<()>;

    /// Checks that the store works as a whole. The error says what is missing.
    fn check(&self) -> Result<()>;

    /// Returns the value of the variable.
    fn address(&self) -> Result<String>;

    /// Returns the file that says that `up` started the store, so that no test run may stop it.
    fn kept(&self) -> PathBuf {
        self.folder().join("kept")
    }

    /// Returns whether the user has named a store of their own, so that ours is not needed.
    fn is_given(&self) -> bool {
        is_given(self.variable())
    }
}

/// Returns whether the user has set this variable.
pub(crate) fn is_given(variable: &str) -> bool {
    env::var_os(variable).is_some_and(|value| !value.is_empty())
}

/// The stores of one engine.
#[derive(Debug)]
pub(crate) struct Stores {
    places: Places,
    stores: Vec<Box<dyn Store>>,
}

impl Stores {
    pub(crate) fn new(places: &Places, stores: Vec<Box<dyn Store>>) -> Self {
        Self { places: places.clone(), stores }
    }

    pub(crate) fn without_given(mut self) -> Self {
        self.stores.retain(|store| !store.is_given());
        self
    }

    /// Starts the stores that do not work. With `keep` they run until the user calls `down`.
    pub(crate) fn up(&self, keep: bool) -> Result<()> {
        let _alone = FileLock::exclusive(&self.places.change_lock())?;
        start::start(&self.stores)?;
        if keep {
            self.stores.iter().try_for_each(|store| fs::write(store.kept(), ""))?;
        }
        Ok(())
    }

    pub(crate) fn down(&self) -> Result<()> {
        let _alone = FileLock::exclusive_regardless(&self.places.change_lock())?;
        stop(self.stores.iter().map(|store| &**store))
    }

    /// Stops the stores that no `up` asked for.
    pub(crate) fn stop_unkept(&self) -> Result<()> {
        let _alone = FileLock::exclusive_regardless(&self.places.change_lock())?;
        stop(self.stores.iter().map(|store| &**store).filter(|store| !store.kept().exists()))
    }

    /// Returns the variables that tell tests about the stores.
    pub(crate) fn environment(&self) -> Result<Vec<(&'static str, String)>> {
        self.stores.iter().map(|store| Ok((store.variable(), store.address()?))).collect()
    }
}

fn stop<'a>(stores: impl Iterator<Item = &'a dyn Store>) -> Result<()> {
    let is_alive = |store: &&dyn Store| store.processes().iter().any(|process| process.life() != Life::Dead);
    let (alive, dead): (Vec<_>, Vec<_>) = stores.partition(is_alive);
    if !alive.is_empty() {
        let names = names(&alive);
        let step = Step::begin(format!("stopping {names}"));
        stop_processes(&alive)?;
        step.done(&format!("stopped {names}"));
    }
    for store in alive.into_iter().chain(dead) {
        // The file does not exist if no `up` asked for the store.
        let _ = fs::remove_file(store.kept());
    }
    Ok(())
}

fn stop_processes(stores: &[&dyn Store]) -> Result<()> {
    let daemons: Vec<_> =
        stores.iter().flat_map(|store| store.processes()).map(|process| process.daemon()).collect();
    daemon::stop_all(&daemons)
}

fn names(stores: &[&dyn Store]) -> String {
    stores.iter().map(|store| store.name()).collect::<Vec<_>>().join(", ")
}
