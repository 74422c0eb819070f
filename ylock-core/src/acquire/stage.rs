//! How far an acquisition is: described, or under way.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::error::{Error, ErrorKind, Result};

/// How far an acquisition is.
pub(super) enum Stage<C, T> {
    /// It was described, and not polled.
    Asked(C),
    /// On the heap, so that the acquisition is a value that may be moved, stored and named.
    Begun(Pin<Box<dyn Future<Output = Result<T>> + Send>>),
    /// It has ended; or it was told more after it was polled, and what had begun was dropped.
    Over,
}

impl<C, T> Stage<C, T> {
    /// Polls it, and begins it first if that was not done.
    pub(super) fn poll(
        &mut self,
        context: &mut Context<'_>,
        begin: impl FnOnce(C) -> Pin<Box<dyn Future<Output = Result<T>> + Send>>,
    ) -> Poll<Result<T>> {
        *self = match std::mem::replace(self, Self::Over) {
            Self::Asked(call) => Self::Begun(begin(call)),
            begun => begun,
        };
        match self {
            Self::Begun(future) => future.as_mut().poll(context),
            Self::Asked(_) | Self::Over => Poll::Ready(Err(over())),
        }
    }

    /// Returns what was described, as long as it was not polled.
    pub(super) fn asked_ref(&self) -> Option<&C> {
        match self {
            Self::Asked(call) => Some(call),
            Self::Begun(_) | Self::Over => None,
        }
    }

    /// Returns what was described.
    pub(super) fn asked(self) -> Result<C> {
        match self {
            Self::Asked(call) => Ok(call),
            Self::Begun(_) | Self::Over => Err(over()),
        }
    }

    /// Returns the same with another description.
    pub(super) fn map<D, U>(self, change: impl FnOnce(C) -> D) -> Stage<D, U> {
        match self {
            Self::Asked(call) => Stage::Asked(change(call)),
            Self::Begun(_) | Self::Over => Stage::Over,
        }
    }
}

fn over() -> Error {
    let message = "this acquisition was polled before: say how it waits, and for whom, before it is polled, and await it once";
    Error::new(ErrorKind::Invalid, message)
}

impl<C: fmt::Debug, T> fmt::Debug for Stage<C, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Asked(call) => call.fmt(f),
            Self::Begun(_) => f.write_str("Begun"),
            Self::Over => f.write_str("Over"),
        }
    }
}
