//! A watch, which the server fires once, asked without waiting for it.

use std::fmt;

use futures_util::FutureExt;

use super::store::WatchEvent;

/// A watch that fires once.
#[derive(Default)]
pub(crate) struct Watch(Option<WatchEvent>);

impl Watch {
    pub(crate) fn on(told: WatchEvent) -> Self {
        Self(Some(told))
    }

    /// Returns whether the watch is set and has not fired. What fired before the answer to a heartbeat has been heard when that answer is:
    /// the server and the driver keep the order of what they send and receive.
    pub(crate) fn is_quiet(&mut self) -> bool {
        let Some(told) = &mut self.0 else { return false };
        if told.now_or_never().is_some() {
            self.0 = None;
        }
        self.0.is_some()
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Watch").field(&self.0.is_some()).finish()
    }
}
