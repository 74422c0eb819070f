//! The part that talks to the servers, with the crate `zookeeper-client` as its driver.

mod connection;
mod diagnose;
mod dialer;
mod ended;
mod errors;
mod operator;
#[cfg(test)]
mod tests;
mod tree;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use ylock_core::Error;
use ylock_core::engine::ServerReport;
use ylock_core::environment::Environment;

use self::dialer::Dialer;
use self::tree::Tree;
use crate::algorithm::store::{Ensemble, Store};
use crate::options::ZookeeperOptions;

pub(crate) use zookeeper_client::Connector;

/// The servers that options name.
#[derive(Debug)]
pub(crate) struct Servers(Arc<Dialer>);

impl Servers {
    pub(crate) fn of(options: &ZookeeperOptions, environment: &Arc<dyn Environment>) -> Self {
        Self(Arc::new(Dialer::new(options.clone(), Arc::clone(environment))))
    }
}

impl Ensemble for Servers {
    fn session(&self) -> Arc<dyn Store> {
        Arc::new(Tree::new(&self.0))
    }

    fn no_session(&self) -> Error {
        self.0.no_session(None)
    }

    fn servers(&self) -> Pin<Box<dyn Future<Output = Vec<ServerReport>> + Send>> {
        let dialer = Arc::clone(&self.0);
        Box::pin(async move { diagnose::servers(&dialer.options, &*dialer.environment).await })
    }
}

/// A connector that the program has handed over. Its own `Debug` shows the password of a login by SASL.
#[derive(Clone)]
pub(crate) struct HandedOver(pub(crate) Connector);

impl fmt::Debug for HandedOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connector")
    }
}
