//! Runs three real Cassandra nodes that are one cluster, and a fourth, alone, that requires TLS and a password.

mod answer;
mod cql;
mod deaf;
mod node;
mod nodetool;
mod ready;
mod start;
mod tls;

use std::fs;

use anyhow::{Context, Result, bail};
use rustix::process::Signal;

use self::{
    node::{LOGIN, Node, RING},
    start::{software, start},
};
use crate::{
    cli::NodeAction,
    daemon::{self, Life},
    file_lock::FileLock,
    places::Places,
    progress::Step,
};

#[derive(Clone, Debug)]
pub(crate) struct Cassandra {
    places: Places,
}

impl Cassandra {
    pub(crate) fn new(places: &Places) -> Self {
        Self { places: places.clone() }
    }

    /// Starts the nodes that are not up. With `keep` they run until the user calls `down`.
    pub(crate) fn up(&self, with_login: bool, keep: bool) -> Result<()> {
        let _alone = FileLock::exclusive(&self.places.change_lock())?;
        let mut clusters = vec![self.nodes(&RING)];
        if with_login {
            clusters.push(self.nodes(&[LOGIN]));
        }
        start(&clusters, &self.places)?;
        if keep {
            clusters.concat().iter().try_for_each(|node| fs::write(node.kept(), ""))?;
        }
        Ok(())
    }

    pub(crate) fn down(&self) -> Result<()> {
        let _alone = FileLock::exclusive_regardless(&self.places.change_lock())?;
        stop(&self.all())
    }

    /// Stops the nodes that no `up` asked for.
    pub(crate) fn stop_unkept(&self) -> Result<()> {
        let _alone = FileLock::exclusive_regardless(&self.places.change_lock())?;
        let unkept: Vec<_> = self.all().into_iter().filter(|node| !node.kept().exists()).collect();
        stop(&unkept)
    }

    /// Returns the variables that tell tests about the servers.
    pub(crate) fn environment(&self, with_login: bool) -> Vec<(&'static str, String)> {
        let addresses = self.nodes(&RING).iter().map(|node| node.address().to_string()).collect::<Vec<_>>();
        let mut variables = vec![
            ("YLOCK_TEST_CASSANDRA", addresses.join(",")),
            ("YLOCK_TEST_NODES_DIR", self.places.nodes().display().to_string()),
        ];
        if with_login {
            let node = Node::new(&self.places.nodes(), LOGIN);
            variables.push(("YLOCK_TEST_CASSANDRA_LOGIN", node.address().to_string()));
            variables.push(("YLOCK_TEST_CASSANDRA_CA", node.ca().display().to_string()));
        }
        variables
    }

    pub(crate) fn change_node(&self, number: u8, action: NodeAction) -> Result<()> {
        let _alone = FileLock::exclusive(&self.places.change_lock())?;
        let node = self.all().into_iter().find(|node| node.number() == number).context("nodes are 1 to 4")?;
        let daemon = node.daemon();
        match action {
            NodeAction::Cont => daemon.signal(Signal::CONT)?,
            NodeAction::Cut => deaf::cut(&node, &software(&self.places)?)?,
            NodeAction::Flush => nodetool::flush(&node, &software(&self.places)?)?,
            NodeAction::Join => deaf::join(&node, &software(&self.places)?)?,
            NodeAction::Kill => daemon.kill()?,
            NodeAction::Start => return self.start_again(&node),
            NodeAction::Stop => daemon.signal(Signal::STOP)?,
            NodeAction::Wait => return self.wait(&node),
        }
        Ok(())
    }

    fn start_again(&self, node: &Node) -> Result<()> {
        if node.life().is_over() {
            if !node.is_prepared() {
                bail!("node {} never ran: `cargo xtask up` starts the whole cluster", node.number());
            }
            node.check_ports()?;
            node.start(&software(&self.places)?)?;
        }
        self.wait(node)
    }

    /// Waits until the node answers and those of its peers that run see it up.
    fn wait(&self, node: &Node) -> Result<()> {
        let step = Step::begin(format!("waiting for Cassandra node {}", node.number()));
        if node.wants_login() {
            ready::until_login(node, &step)?;
        } else {
            let is_there = |peer: &Node| peer.number() == node.number() || peer.life() == Life::Running;
            let nodes: Vec<_> = self.nodes(&RING).into_iter().filter(is_there).collect();
            ready::until_agreed(&nodes, &step)?;
        }
        step.done(&format!("Cassandra node {} is ready", node.number()));
        Ok(())
    }

    fn all(&self) -> Vec<Node> {
        self.nodes(&[RING.as_slice(), &[LOGIN]].concat())
    }

    fn nodes(&self, numbers: &[u8]) -> Vec<Node> {
        numbers.iter().map(|&number| Node::new(&self.places.nodes(), number)).collect()
    }
}

fn stop(nodes: &[Node]) -> Result<()> {
    let alive: Vec<_> = nodes.iter().filter(|node| node.life() != Life::Dead).collect();
    if alive.is_empty() {
        return Ok(());
    }
    let names = names(alive);
    let step = Step::begin(format!("stopping Cassandra {names}"));
    let daemons: Vec<_> = nodes.iter().map(Node::daemon).collect();
    daemon::stop_all(&daemons)?;
    for node in nodes {
        // The file does not exist if no `up` asked for the node.
        let _ = fs::remove_file(node.kept());
    }
    step.done(&format!("stopped Cassandra {names}"));
    Ok(())
}

fn names<'a>(nodes: impl IntoIterator<Item = &'a Node>) -> String {
    let numbers: Vec<_> = nodes.into_iter().map(|node| node.number().to_string()).collect();
    format!("{} {}", if numbers.len() == 1 { "node" } else { "nodes" }, numbers.join(", "))
}
