//! A client process, as the run sees it that starts and ends it.

use std::sync::Arc;

use ylock_core::ClientName;
use ylock_core::engine::Engine;
use ylock_core::environment::BoxFuture;

use crate::clocks::Clocks;
use crate::facade;
use crate::world::Actor;

/// Returns the name that a client gives itself.
pub(crate) fn name_of(actor: Actor) -> ClientName {
    ClientName::new(format!("{actor:?}")).unwrap_or_default()
}

/// One run of a client process.
pub(crate) struct Process {
    pub(crate) actor: Actor,
    pub(crate) clocks: Arc<Clocks>,
    pub(crate) program: Program,
}

/// The program that a process runs.
#[derive(Clone)]
pub(crate) enum Program {
    Engine(Arc<dyn Engine>),
    Facade(Arc<facade::Process>),
}

impl Program {
    /// Closes what the process uses.
    pub(crate) fn close(self) -> BoxFuture {
        Box::pin(async move {
            match self {
                Self::Engine(engine) => drop(engine.close().await),
                Self::Facade(process) => process.close().await,
            }
        })
    }

    /// Returns how many keys the client has in the store, or may have, as far as it knows; `None` above the keeper.
    pub(crate) fn claims(&self) -> Option<usize> {
        let Self::Engine(engine) = self else { return None };
        engine.in_memory().into_iter().find(|(what, _)| *what == "claims").map(|(_, count)| count)
    }

    /// Returns how many keys the process still knows.
    pub(crate) fn keys_in_use(&self) -> usize {
        match self {
            Self::Engine(_) => 0,
            Self::Facade(process) => process.keys_in_use(),
        }
    }
}
