//! Runs one Redis server alone.

use std::path::PathBuf;

use anyhow::Result;

use super::server::Server;
use crate::store::{Process, Store, addresses, free_ports};

#[derive(Debug)]
pub(super) struct Single {
    server: Server,
}

impl Single {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { server: Server::new(folder) }
    }
}

impl Store for Single {
    fn name(&self) -> &'static str {
        "Redis"
    }

    fn variable(&self) -> &'static str {
        "YLOCK_TEST_REDIS"
    }

    fn processes(&self) -> Vec<Process> {
        vec![self.server.process().clone()]
    }

    fn start(&self) -> Result<()> {
        let [port] = free_ports();
        self.server.start(port, &[])
    }

    fn check(&self) -> Result<()> {
        self.server.check_answer()
    }

    fn address(&self) -> Result<String> {
        addresses(&self.processes())
    }
}
