//! An environment whose background work is in the runtime in which it begins, and stands still with it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ylock_core::environment::{BoxFuture, Environment, Moment, SystemEnvironment};

/// The environment; see the [module](self).
pub(crate) struct Standing(Arc<dyn Environment>);

impl Standing {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(SystemEnvironment::shared()))
    }
}

impl Environment for Standing {
    fn now(&self) -> Moment {
        self.0.now()
    }

    fn wall_micros(&self) -> i64 {
        self.0.wall_micros()
    }

    fn random(&self) -> u64 {
        self.0.random()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture {
        self.0.sleep(duration)
    }

    #[allow(clippy::disallowed_methods, reason = "a test says in which runtime it runs")]
    fn spawn(&self, future: BoxFuture) {
        drop(tokio::spawn(future));
    }

    fn enter(&self) -> bool {
        true
    }
}

impl fmt::Debug for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Standing")
    }
}
