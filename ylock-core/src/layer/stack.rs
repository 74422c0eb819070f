//! The layers over some locks, and how they are called.

use std::sync::Arc;
use std::time::Duration;

use super::{Acquisition, End, Layer, Outcome};
use crate::error::{Error, ErrorKind, Result};
use crate::foreign::guarded;

/// The layers over some locks, outermost first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layers(Option<Arc<[Arc<dyn Layer>]>>);

impl Layers {
    /// Returns these layers and one more, inside the others.
    pub(crate) fn with(&self, layer: Arc<dyn Layer>) -> Self {
        Self(Some(self.all().iter().cloned().chain([layer]).collect()))
    }

    /// Returns these layers and one more, outside the others, if there is one.
    pub(crate) fn under(&self, layer: Option<Arc<dyn Layer>>) -> Self {
        match layer {
            Some(layer) => Self(Some([layer].into_iter().chain(self.all().iter().cloned()).collect())),
            None => self.clone(),
        }
    }

    /// Returns whether there is nothing to call: then nothing needs to be measured or copied either.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub(crate) fn acquiring(&self, acquisition: &Acquisition) -> Result<()> {
        for (index, layer) in self.all().iter().enumerate() {
            let answer = guarded("a layer", || layer.acquiring(acquisition))
                .unwrap_or_else(|| Err(panicked(acquisition)));
            if let Err(error) = answer {
                // The layers outside the one that refused have been told of a beginning and are owed an end.
                let outcome = Outcome::Failed(error.clone());
                for layer in self.all()[..index].iter().rev() {
                    guarded("a layer", || layer.acquired(acquisition, &outcome, Duration::ZERO));
                }
                return Err(error);
            }
        }
        Ok(())
    }

    pub(crate) fn acquired(&self, acquisition: &Acquisition, outcome: &Outcome, waited: Duration) {
        for layer in self.all().iter().rev() {
            guarded("a layer", || layer.acquired(acquisition, outcome, waited));
        }
    }

    pub(crate) fn ended(&self, acquisition: &Acquisition, end: End, held: Duration) {
        for layer in self.all().iter().rev() {
            guarded("a layer", || layer.ended(acquisition, end, held));
        }
    }

    fn all(&self) -> &[Arc<dyn Layer>] {
        self.0.as_deref().unwrap_or(&[])
    }
}

fn panicked(acquisition: &Acquisition) -> Error {
    Error::new(
        ErrorKind::Unexpected,
        "a layer panicked when it was asked about this acquisition: see the log",
    )
    .with_key(&acquisition.key)
}
