//! What layers are told of an acquisition: its beginning, its outcome, and later its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::environment::Moment;
use crate::error::Result;
use crate::guard::Guard;
use crate::keeper::{Acquired, Admission};
use crate::key::Key;
use crate::layer::{Acquisition, Layer, Layers, Outcome};
use crate::mode::Mode;
use crate::owner::Owner;
use crate::terms::Terms;

/// The number of the next acquisition that layers see. One counter for the process: a layer may lie over several clients.
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

/// Returns the layers that are told of what is acquired on these terms.
pub(crate) fn layers_over(terms: &Terms) -> Layers {
    let event_bus = terms.handle.keeper.event_bus().map(|bus| bus as Arc<dyn Layer>);
    terms.handle.layers.under(event_bus)
}

/// Returns what layers are told of an acquisition, with the next number.
pub(crate) fn acquisition(
    terms: &Terms,
    key: &Key,
    mode: Mode,
    owner: Owner,
    max_wait: Option<Duration>,
) -> Acquisition {
    let keeper = &terms.handle.keeper;
    Acquisition {
        number: NEXT_NUMBER.fetch_add(1, Ordering::Relaxed),
        engine: keeper.engine().name(),
        client: keeper.name().get(),
        key: key.clone(),
        permits: None,
        mode,
        owner,
        max_wait,
    }
}

/// What the layers have been told of an acquisition that was granted, and are to be told of its end.
pub(crate) struct Granted {
    layers: Layers,
    acquisition: Acquisition,
    since: Moment,
}

impl Granted {
    /// Returns the guard whose end the layers are told.
    pub(crate) fn watch(self, guard: Guard) -> Guard {
        guard.watched(self.layers, self.acquisition, self.since)
    }
}

/// Acquires by `acquiring`, and tells the layers of its beginning and its outcome.
pub(crate) async fn tell<T>(
    terms: &Terms,
    layers: Layers,
    acquisition: Acquisition,
    acquiring: impl Future<Output = Result<Option<T>>>,
    outcome_of: impl FnOnce(&T) -> Outcome,
) -> Result<Option<(T, Granted)>> {
    layers.acquiring(&acquisition)?;
    let since = terms.handle.keeper.environment().now();
    let mut waiting = Waiting { terms, layers: &layers, since, acquisition: Some(acquisition) };
    let result = acquiring.await;
    let outcome = match &result {
        Ok(Some(acquired)) => outcome_of(acquired),
        Ok(None) => Outcome::NotFree,
        Err(error) => Outcome::Failed(error.clone()),
    };
    let Some((acquisition, since)) = waiting.end(&outcome) else { return Ok(None) };
    drop(waiting);
    Ok(result?.map(|acquired| (acquired, Granted { layers, acquisition, since })))
}

impl Acquired {
    /// Returns what the layers are told of it.
    pub(crate) fn outcome(&self) -> Outcome {
        match self.admission {
            Admission::Reentered => Outcome::Reentered,
            Admission::New { waited } => Outcome::Granted { waited },
        }
    }
}

/// An acquisition whose outcome the layers are still owed. A caller that stops waiting drops it.
struct Waiting<'a> {
    terms: &'a Terms,
    layers: &'a Layers,
    since: Moment,
    acquisition: Option<Acquisition>,
}

impl Waiting<'_> {
    /// Tells the layers the outcome. Returns also the moment of it: a hold begins where the wait ends.
    fn end(&mut self, outcome: &Outcome) -> Option<(Acquisition, Moment)> {
        let acquisition = self.acquisition.take()?;
        let now = self.terms.handle.keeper.environment().now();
        self.layers.acquired(&acquisition, outcome, now.since(self.since));
        Some((acquisition, now))
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.end(&Outcome::Cancelled);
    }
}
