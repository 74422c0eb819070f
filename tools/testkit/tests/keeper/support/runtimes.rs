//! The runtimes that tests start and end, and the clients over an engine with a fault.

use std::sync::Arc;

use tokio::runtime::{Builder, Runtime};
use ylock_core::{MemoryStore, Ylock};
use ylock_testkit::{Fault, Faulty};

/// A runtime that runs by itself, on a thread of its own.
pub(crate) fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

/// A runtime that runs only while the test is in it.
pub(crate) fn current_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// A runtime whose clock stands still unless all tasks sleep.
pub(crate) fn paused() -> Runtime {
    Builder::new_current_thread().enable_all().start_paused(true).build().unwrap()
}

/// A client whose engine has this fault.
pub(crate) fn over(store: &MemoryStore, fault: &Arc<impl Fault>) -> Ylock {
    Ylock::from_arc(Faulty::over(Arc::new(store.engine()), fault))
}
