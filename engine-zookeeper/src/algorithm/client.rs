//! What all sessions of one client share.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ylock_core::engine::Meter;
use ylock_core::environment::Environment;

use super::floor::TokenFloor;
use super::store::Ensemble;
use crate::options::ZookeeperOptions;

/// One client of the servers.
pub(crate) struct Client {
    pub(crate) ensemble: Arc<dyn Ensemble>,
    pub(crate) environment: Arc<dyn Environment>,
    pub(crate) options: ZookeeperOptions,
    pub(crate) meter: Meter,
    pub(super) floor: TokenFloor,
    /// The number of sessions that there have been, over all connections: nodes that different sessions of a client made must have
    /// different numbers.
    sessions: AtomicU64,
}

impl Client {
    pub(crate) fn new(
        ensemble: Arc<dyn Ensemble>,
        environment: Arc<dyn Environment>,
        options: &ZookeeperOptions,
    ) -> Arc<Self> {
        let meter = Meter::of(crate::NAME, options.cluster());
        let (options, sessions) = (options.clone(), AtomicU64::new(0));
        Arc::new(Self { ensemble, environment, options, meter, floor: TokenFloor::default(), sessions })
    }

    /// Returns the number of the next session.
    pub(super) fn next_session(&self) -> u64 {
        self.sessions.fetch_add(1, Ordering::Relaxed) + 1
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("ensemble", &self.ensemble).finish_non_exhaustive()
    }
}
