//! Middleware, seen from the user's side.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::engine::LossReason;
use crate::error::{Error, Result};
use crate::key::Key;
use crate::mode::{Mode, Wait};
use crate::owner::Owner;

/// One call of a user who wants a lock.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Acquisition {
    /// What for.
    pub key: Key,
    /// Shared or exclusive.
    pub mode: Mode,
    /// Who.
    pub owner: Owner,
    /// How long the caller is ready to wait.
    pub wait: Wait,
}

impl Acquisition {
    pub(crate) fn new(key: Key, mode: Mode, owner: Owner, wait: Wait) -> Self {
        Self { key, mode, owner, wait }
    }
}

/// How an acquisition ended.
#[derive(Debug)]
#[non_exhaustive]
pub enum Outcome<'a> {
    /// The caller stopped waiting: it dropped the future.
    Cancelled,
    /// An error, also that of a layer that refused.
    Failed(&'a Error),
    /// The caller holds the lock.
    Granted {
        /// The owner held it already.
        reentrant: bool,
    },
    /// The lock was not free, or not in time.
    NotFree,
}

/// How a hold ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// It was lost before it was given back.
    Lost(LossReason),
    /// It was given back.
    Released,
}

/// Middleware: sees every acquisition and every end of a hold, and may refuse.
///
/// Layers are called in the order in which they were added for [`acquiring`](Self::acquiring), and in the reverse order
/// for what follows. Calls are made by the task that uses the lock and never while anything is locked: be quick,
/// and hand slow work to a task of your own.
///
/// # Examples
/// ```
/// use ylock_core::{Error, ErrorKind, Layer, Result, Ylock};
/// use ylock_core::layer::Acquisition;
///
/// #[derive(Debug)]
/// struct ReadOnly(&'static str);
///
/// impl Layer for ReadOnly {
///     fn acquiring(&self, acquisition: &Acquisition) -> Result<()> {
///         if acquisition.key.group() == self.0 {
///             return Err(Error::new(ErrorKind::Refused, format!("group {} is closed", self.0)));
///         }
///         Ok(())
///     }
/// }
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let ylock = Ylock::in_memory().with(ReadOnly("archive"));
/// assert_eq!(ylock.locks("archive").write("2025").await.unwrap_err().kind(), ErrorKind::Refused);
/// # }
/// ```
pub trait Layer: fmt::Debug + Send + Sync + 'static {
    /// Somebody wants a lock. An error refuses it: the caller gets this error, and nothing reaches the keeper.
    ///
    /// Each call is followed by exactly one [`acquired`](Self::acquired), unless this layer itself refused.
    fn acquiring(&self, acquisition: &Acquisition) -> Result<()> {
        let _ = acquisition;
        Ok(())
    }

    /// An acquisition has ended, `waited` after it began.
    fn acquired(&self, acquisition: &Acquisition, outcome: &Outcome<'_>, waited: Duration) {
        let _ = (acquisition, outcome, waited);
    }

    /// A hold that was granted has ended, `held` after it began. Reentrant acquisitions have an end of their own.
    fn ended(&self, acquisition: &Acquisition, end: End, held: Duration) {
        let _ = (acquisition, end, held);
    }
}

/// The layers of a client, outermost first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layers(Option<Arc<[Arc<dyn Layer>]>>);

impl Layers {
    pub(crate) fn with(&self, layer: impl Layer) -> Self {
        let layer: Arc<dyn Layer> = Arc::new(layer);
        Self(Some(self.all().iter().cloned().chain([layer]).collect()))
    }

    /// Whether there is nothing to call: then nothing needs to be measured or copied either.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub(crate) fn acquiring(&self, acquisition: &Acquisition) -> Result<()> {
        for (index, layer) in self.all().iter().enumerate() {
            if let Err(error) = layer.acquiring(acquisition) {
                // Those outside the one that refused have been told of a beginning and are owed an end.
                for layer in self.all()[..index].iter().rev() {
                    layer.acquired(acquisition, &Outcome::Failed(&error), Duration::ZERO);
                }
                return Err(error);
            }
        }
        Ok(())
    }

    pub(crate) fn acquired(&self, acquisition: &Acquisition, outcome: &Outcome<'_>, waited: Duration) {
        for layer in self.all().iter().rev() {
            layer.acquired(acquisition, outcome, waited);
        }
    }

    pub(crate) fn ended(&self, acquisition: &Acquisition, end: End, held: Duration) {
        for layer in self.all().iter().rev() {
            layer.ended(acquisition, end, held);
        }
    }

    fn all(&self) -> &[Arc<dyn Layer>] {
        self.0.as_deref().unwrap_or(&[])
    }
}
