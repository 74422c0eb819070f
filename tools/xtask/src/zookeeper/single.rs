//! Runs one ZooKeeper server alone.

use anyhow::{Result, bail};

use super::{JARS, server::Server};
use crate::{
    places::Places,
    store::{Process, Store, addresses, free_ports},
};

#[derive(Debug)]
pub(super) struct Single {
    places: Places,
    server: Server,
}

impl Single {
    pub(super) fn new(places: &Places) -> Self {
        Self { places: places.clone(), server: Server::new(places.root().join("zookeeper")) }
    }
}

impl Store for Single {
    fn name(&self) -> &'static str {
        "ZooKeeper"
    }

    fn variable(&self) -> &'static str {
        "YLOCK_TEST_ZOOKEEPER"
    }

    fn processes(&self) -> Vec<Process> {
        vec![self.server.process().clone()]
    }

    fn start(&self) -> Result<()> {
        let [port] = free_ports();
        self.server.start(&JARS.software(&self.places)?, port, 1, "")
    }

    fn check(&self) -> Result<()> {
        match self.server.mode()?.as_str() {
            "standalone" => Ok(()),
            other => bail!("the server is a {other}, not standalone"),
        }
    }

    fn address(&self) -> Result<String> {
        addresses(&self.processes())
    }
}
