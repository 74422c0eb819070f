//! A cluster of Cassandra nodes, as one store.

use std::{slice, time::Duration};

use anyhow::Result;
use rustix::process::Signal;

use super::{
    JARS,
    node::{LOGIN, Node, RING},
    ready,
};
use crate::{
    daemon::ProcessState,
    places::Places,
    store::{self, Process, Store, Variable},
};

#[derive(Debug)]
pub(super) struct Cluster {
    name: &'static str,
    variable: &'static str,
    nodes: Vec<Node>,
    places: Places,
}

impl Cluster {
    /// Three nodes that are one cluster.
    pub(super) fn ring(places: &Places) -> Self {
        Self::new("Cassandra", VARIABLE, &RING, places)
    }

    /// A node, alone, that requires TLS and a password.
    pub(super) fn login(places: &Places) -> Self {
        Self::new("Cassandra with login", "YLOCK_TEST_CASSANDRA_LOGIN", slice::from_ref(&LOGIN), places)
    }

    fn new(name: &'static str, variable: &'static str, numbers: &[u8], places: &Places) -> Self {
        let nodes = numbers.iter().map(|&number| Node::new(places, number)).collect();
        Self { name, variable, nodes, places: places.clone() }
    }
}

impl Store for Cluster {
    fn name(&self) -> &'static str {
        self.name
    }

    fn variable(&self) -> &'static str {
        self.variable
    }

    fn processes(&self) -> Vec<Process> {
        self.nodes.iter().map(|node| node.process().clone()).collect()
    }

    fn to_start(&self) -> Vec<Process> {
        self.processes().into_iter().filter(|process| process.state().is_over()).collect()
    }

    fn start(&self) -> Result<()> {
        let software = JARS.software(&self.places)?;
        for node in self.nodes.iter().filter(|node| node.state() == ProcessState::Paused) {
            node.daemon().signal(Signal::CONT)?;
        }
        let over: Vec<_> = self.nodes.iter().filter(|node| node.state().is_over()).collect();
        over.iter().try_for_each(|node| node.check_ports())?;
        for node in &over {
            // A node that died alone keeps its data: the other nodes remember it.
            if over.len() == self.nodes.len() || !node.is_prepared() {
                node.prepare()?;
            }
            node.start(&software)?;
        }
        Ok(())
    }

    fn check(&self) -> Result<()> {
        if self.wants_login() { ready::check_login(&self.nodes[0]) } else { ready::check_ring(&self.nodes) }
    }

    fn patience(&self) -> Duration {
        ready::PATIENCE
    }

    fn address(&self) -> Result<String> {
        Ok(self.nodes.iter().map(|node| node.address().to_string()).collect::<Vec<_>>().join(","))
    }

    fn environment(&self) -> Result<Vec<Variable>> {
        let mut variables = vec![(self.variable, self.address()?)];
        if self.wants_login() {
            variables.push(("YLOCK_TEST_CASSANDRA_CA", self.nodes[0].ca().display().to_string()));
        }
        Ok(variables)
    }

    fn wants_login(&self) -> bool {
        self.nodes[0].wants_login()
    }

    /// A user who names a cluster gets no node of ours beside it.
    fn is_given(&self) -> bool {
        store::is_given(VARIABLE)
    }
}

const VARIABLE: &str = "YLOCK_TEST_CASSANDRA";
