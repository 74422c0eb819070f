//! Runs stores of one or several processes, each known to tests by one variable: started, kept and stopped as a whole.

mod process;
mod ready;
mod start;

use std::{env, fmt::Debug, fs, path::PathBuf, time::Duration};

use anyhow::Result;

use self::ready::PATIENCE;
pub(crate) use self::{
    process::{Process, addresses, free_ports},
    ready::{until, until_within},
};
use crate::{
    daemon::{self, ProcessState},
    file_lock::FileLock,
    places::Places,
    progress::Step,
};

/// An environment variable that tells tests about servers, and its value.
pub(crate) type Variable = (&'static str, String);

pub(crate) trait Store: Debug + Send + Sync {
    /// Returns the name in messages.
    fn name(&self) -> &'static str;

    /// Returns the environment variable that holds the store's address.
    fn variable(&self) -> &'static str;

    fn processes(&self) -> Vec<Process>;

    /// Returns the processes that `start` starts. They are stopped before: what tests leave of most stores is not worth mending.
    fn to_start(&self) -> Vec<Process> {
        self.processes()
    }

    /// Starts processes; on free ports and without the data of earlier runs, unless the store mends itself.
    fn start(&self) -> Result<()>;

    /// Checks that the store works as a whole. The error says what is missing.
    fn check(&self) -> Result<()>;

    /// Returns the time that the store has to become ready.
    fn patience(&self) -> Duration {
        PATIENCE
    }

    /// Returns the value of the variable.
    fn address(&self) -> Result<String>;

    /// Returns the variables that tell tests about the store.
    fn environment(&self) -> Result<Vec<Variable>> {
        Ok(vec![(self.variable(), self.address()?)])
    }

    /// Returns whether clients need a login and TLS. `up` starts such a store only if it is asked to.
    fn wants_login(&self) -> bool {
        false
    }

    /// Returns the file that says that `up` started the store, so that no test run may stop it.
    fn kept(&self) -> PathBuf {
        self.processes()[0].folder().join("kept")
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
    prepare: Prepare,
}

/// Installs and fetches what servers need. Never called twice at once.
pub(crate) type Prepare = fn(&Places) -> Result<()>;

impl Stores {
    pub(crate) fn new(places: &Places, stores: Vec<Box<dyn Store>>, prepare: Prepare) -> Self {
        Self { places: places.clone(), stores, prepare }
    }

    pub(crate) fn without_given(mut self) -> Self {
        self.stores.retain(|store| !store.is_given());
        self
    }

    pub(crate) fn has_given(&self) -> bool {
        self.stores.iter().any(|store| store.is_given())
    }

    pub(crate) fn without_login(mut self) -> Self {
        self.stores.retain(|store| !store.wants_login());
        self
    }

    /// Starts the stores that do not work. With `keep` they run until the user calls `down`.
    pub(crate) fn up(&self, keep: bool) -> Result<()> {
        let _alone = FileLock::exclusive(&self.places.change_lock())?;
        start::start(&self.stores, || (self.prepare)(&self.places))?;
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

    /// Returns the address of the first store: that of the user, if the user has named one. Without stores it is empty.
    pub(crate) fn address(&self) -> Result<String> {
        let Some(store) = self.stores.first() else { return Ok(String::new()) };
        if store.is_given() { Ok(env::var(store.variable())?) } else { store.address() }
    }

    /// Returns the variables that tell tests about the stores.
    pub(crate) fn environment(&self) -> Result<Vec<Variable>> {
        Ok(self.stores.iter().map(|store| store.environment()).collect::<Result<Vec<_>>>()?.concat())
    }
}

fn stop<'a>(stores: impl Iterator<Item = &'a dyn Store>) -> Result<()> {
    let is_alive =
        |store: &&dyn Store| store.processes().iter().any(|process| process.state() != ProcessState::Dead);
    let (alive, dead): (Vec<_>, Vec<_>) = stores.partition(is_alive);
    if !alive.is_empty() {
        let names = names(&alive);
        let step = Step::begin(format!("stopping {names}"));
        stop_processes(&alive.iter().flat_map(|store| store.processes()).collect::<Vec<_>>())?;
        step.done(&format!("stopped {names}"));
    }
    for store in alive.into_iter().chain(dead) {
        // The file does not exist if no `up` asked for the store.
        let _ = fs::remove_file(store.kept());
    }
    Ok(())
}

fn stop_processes(processes: &[Process]) -> Result<()> {
    daemon::stop_all(&processes.iter().map(Process::daemon).collect::<Vec<_>>())
}

fn names(stores: &[&dyn Store]) -> String {
    stores.iter().map(|store| store.name()).collect::<Vec<_>>().join(", ")
}
