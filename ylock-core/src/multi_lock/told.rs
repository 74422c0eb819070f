//! What the layers are told of a set: of each of its locks one acquisition, from the beginning of the set to its end.

use std::time::Duration;

use super::wanted::Member;
use crate::acquire::{acquisition, layers_over};
use crate::environment::Moment;
use crate::error::Result;
use crate::guard::Guard;
use crate::keeper::Acquired;
use crate::layer::{Acquisition, Layers, Outcome};
use crate::owner::Owner;
use crate::terms::Terms;

/// The acquisitions of a set whose outcome the layers are still owed. A caller that stops waiting drops it.
pub(super) struct Told<'a> {
    terms: &'a Terms,
    layers: Layers,
    since: Moment,
    /// One for each member, in their order; none without layers.
    owed: Vec<Acquisition>,
}

impl<'a> Told<'a> {
    /// Tells the layers of all members. If one is refused, those before it end with the same error.
    pub(super) fn begin(
        terms: &'a Terms,
        members: &[Member],
        owner: Owner,
        max_wait: Option<Duration>,
    ) -> Result<Self> {
        let layers = layers_over(terms);
        let mut told = Self { terms, layers, since: Moment::ZERO, owed: Vec::new() };
        if told.layers.is_empty() {
            return Ok(told);
        }
        told.since = told.now();
        for member in members {
            let next = acquisition(terms, &member.key, member.mode, owner, max_wait);
            if let Err(error) = told.layers.acquiring(&next) {
                told.end(&Outcome::Failed(error.clone()));
                return Err(error);
            }
            told.owed.push(next);
        }
        told.since = told.now();
        Ok(told)
    }

    /// Tells the layers that all have this outcome.
    pub(super) fn end(&mut self, outcome: &Outcome) {
        let owed = std::mem::take(&mut self.owed);
        if owed.is_empty() {
            return;
        }
        let now = self.now();
        owed.iter().for_each(|one| self.layers.acquired(one, outcome, now.since(self.since)));
    }

    /// Tells the layers that all are granted, and returns the guards.
    pub(super) fn granted(mut self, taken: Vec<Acquired>) -> Vec<Guard> {
        let owed = std::mem::take(&mut self.owed);
        if owed.is_empty() {
            return taken.into_iter().map(Guard::new).collect();
        }
        let now = self.now();
        let watch = |(acquired, one): (Acquired, Acquisition)| {
            self.layers.acquired(&one, &acquired.outcome(), now.since(self.since));
            Guard::new(acquired).watched(self.layers.clone(), one, now)
        };
        taken.into_iter().zip(owed).map(watch).collect()
    }

    fn now(&self) -> Moment {
        self.terms.handle.keeper.environment().now()
    }
}

impl Drop for Told<'_> {
    fn drop(&mut self) {
        self.end(&Outcome::Cancelled);
    }
}
