//! Stores of one or several processes, each known to tests by one variable: started, kept and stopped as a whole.

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
    /// For people.
    fn name(&self) -> &'static str;

    /// The environment variable that says where it is.
    fn variable(&self) -> &'static str;

    fn folder(&self) -> PathBuf;

    fn processes(&self) -> Vec<Process>;

    /// Installs and fetches what `start` needs. Never called for two stores at once.
    fn prepare(&self) -> Result<()>;

    /// Starts all processes, on free ports and with nothing left of what they knew.
    fn start(&self) -> Result<()>;

    /// Fails with what is missing as long as it does not work as a whole.
    fn check(&self) -> Result<()>;

    /// What the variable says.
    fn address(&self) -> Result<String>;

    /// Says that `up` started it, so no test run may stop it.
    fn kept(&self) -> PathBuf {
        self.folder().join("kept")
    }

    /// The user has one of his own and has named it: then ours is not needed.
    fn is_given(&self) -> bool {
        is_given(self.variable())
    }
}

/// Whether the user has set this variable.
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

    /// Brings up what does not work. `keep`: until somebody says `down`.
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

    /// Stops what no `up` asked for.
    pub(crate) fn stop_unkept(&self) -> Result<()> {
        let _alone = FileLock::exclusive_regardless(&self.places.change_lock())?;
        stop(self.stores.iter().map(|store| &**store).filter(|store| !store.kept().exists()))
    }

    /// What tests are told about them.
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
        // Not there when no `up` asked for it.
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
