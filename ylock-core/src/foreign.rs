//! Calls of foreign code: of layers, of subscribers of the log, and of the wakers of callers. A
//! panic there ends that call and nothing else.
//!
//! - [`guarded`] makes such a call.
//! - [`tell!`] tells the log something. It is the only way of this crate to the log.
//! - [`Shield`] stands before the waker of a caller, where code of others would call the waker: of
//!   a store's driver, or of a channel that wakes several callers in a row.
//! - [`Bell`](crate::bell::Bell) wakes several callers.
//!
//! The panic is not handed on to the caller in whose thread it came: most of the time the code is
//! that of another caller.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};

use futures_util::task::AtomicWaker;

/// Tells the log something: `tell!(warn, key = "value", "the text")`, with all that the macros of
/// `tracing` take.
macro_rules! tell {
    ($level:ident, $($told:tt)+) => {
        $crate::foreign::told(|| ::tracing::$level!($($told)+))
    };
}
pub(crate) use tell;

/// Calls foreign code, and catches its panic, which the log is told of: the caller may be in the
/// middle of a release, or have other callers to tell. `whose` names the code. Returns nothing if
/// it has panicked.
pub(crate) fn guarded<T>(whose: &'static str, call: impl FnOnce() -> T) -> Option<T> {
    let answer = catch_unwind(AssertUnwindSafe(call));
    if answer.is_err() {
        tell!(error, "{whose} panicked; the lock goes on as if it had not been called");
    }
    answer.ok()
}

/// Wakes a caller.
pub(crate) fn woken(wake: impl FnOnce()) {
    guarded("the waker of a caller", wake);
}

/// Calls a subscriber of the log. Its panic is not told: it is the subscriber that would be told.
pub(crate) fn told(tell: impl FnOnce()) {
    drop(catch_unwind(AssertUnwindSafe(tell)));
}

/// A waker that calls the one of a caller, and catches its panic.
#[derive(Debug, Default)]
pub(crate) struct Shield(AtomicWaker);

impl Shield {
    /// Makes `waker` the one that is called. To be called in each poll, before what is polled gets
    /// to know the shield.
    pub(crate) fn stands_before(&self, waker: &Waker) {
        self.0.register(waker);
    }

    /// Wakes the caller, if it has not been woken since it has polled.
    pub(crate) fn wake_caller(&self) {
        if let Some(waker) = self.0.take() {
            woken(|| waker.wake());
        }
    }
}

impl Wake for Shield {
    fn wake(self: Arc<Self>) {
        self.wake_caller();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.wake_caller();
    }
}

/// Makes a call whose end wakes the caller from a task of others, such as that of a connection
/// which many calls share.
pub(crate) async fn shielded<T>(call: impl Future<Output = T>) -> T {
    shielded_by(&Arc::default(), call).await
}

/// The same, behind a shield that is there.
pub(crate) async fn shielded_by<T>(shield: &Arc<Shield>, call: impl Future<Output = T>) -> T {
    let (waker, mut call) = (Waker::from(Arc::clone(shield)), pin!(call));
    std::future::poll_fn(|context| {
        shield.stands_before(context.waker());
        call.as_mut().poll(&mut Context::from_waker(&waker))
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    fn panics() {
        std::panic::resume_unwind(Box::new("foreign code that is wrong"));
    }

    #[test]
    fn a_panic_ends_the_call_and_nothing_else() {
        assert_eq!(guarded("a layer", || 7), Some(7));
        assert_eq!(guarded("a layer", panics), None);
        woken(panics);
        told(panics);
    }

    /// Returns the lines of the files below this folder that call a macro of `tracing` for events.
    fn tells(folder: &Path) -> Vec<String> {
        let mut found = Vec::new();
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                found.extend(tells(&path));
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            let macros = ["trace!(", "debug!(", "info!(", "warn!(", "error!(", "event!("];
            let told = |line: &&str| macros.iter().any(|name| line.contains(&["tracing::", name].concat()));
            found.extend(text.lines().filter(told).map(|line| format!("{}: {line}", path.display())));
        }
        found
    }

    /// Another way would be one on which the panic of a subscriber goes on.
    #[test]
    fn the_log_is_told_by_one_macro_only() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        assert_eq!(tells(&folder), Vec::<String>::new());
    }
}
