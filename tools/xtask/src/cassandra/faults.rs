//! Breaks and mends one node: `cargo xtask node` and `cargo xtask clock`, for tests of faults.

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use clap::ValueEnum;
use rustix::process::Signal;

use super::{
    JARS, deaf,
    node::{LOGIN, Node, RING},
    nodetool, ready,
};
use crate::{
    daemon::ProcessState, file_lock::FileLock, jars::Software, places::Places, progress::Step,
    store::until_within,
};

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum NodeAction {
    /// Let a stopped node go on (SIGCONT), with all that it missed
    Cont,
    /// Cut the node off from its peers, but not from clients
    Cut,
    /// Write what the node has in memory to its disk, so that it survives a kill
    Flush,
    /// Undo what `cut` did
    Join,
    /// Kill the node (SIGKILL)
    Kill,
    /// Start the node again on its data, and wait as `wait` does
    Start,
    /// Stop the node (SIGSTOP): it lives but does not answer
    Stop,
    /// Wait until the node answers and its running peers see it up
    Wait,
}

pub(crate) fn change_node(places: &Places, number: u8, action: NodeAction) -> Result<()> {
    let _alone = FileLock::exclusive(&places.change_lock())?;
    let node = node(places, number)?;
    let daemon = node.daemon();
    let software = || JARS.software(places);
    match action {
        NodeAction::Cont => daemon.signal(Signal::CONT),
        NodeAction::Cut => deaf::cut(&node, &software()?),
        NodeAction::Flush => nodetool::flush(&node, &software()?),
        NodeAction::Join => deaf::join(&node, &software()?),
        NodeAction::Kill => daemon.kill(),
        NodeAction::Start => {
            if node.state().is_over() {
                start_again(&node, &software()?)?;
            }
            wait(places, &node)
        }
        NodeAction::Stop => daemon.signal(Signal::STOP),
        NodeAction::Wait => wait_or_gossip_anew(places, &node),
    }
}

/// Sets by how many seconds a node's clock is ahead of the machine's.
pub(crate) fn set_clock(places: &Places, number: u8, ahead: i64) -> Result<()> {
    let _alone = FileLock::exclusive(&places.change_lock())?;
    node(places, number)?.set_clock(ahead.saturating_mul(1_000_000))
}

fn node(places: &Places, number: u8) -> Result<Node> {
    ensure!(RING.contains(&number) || number == LOGIN, "nodes are 1 to 4");
    Ok(Node::new(places, number))
}

fn start_again(node: &Node, software: &Software) -> Result<()> {
    if !node.is_prepared() {
        bail!("node {} never ran: `cargo xtask up` starts the whole cluster", node.number());
    }
    node.check_ports()?;
    node.start(software)
}

/// Waits until the node answers and those of its peers that run see it up.
fn wait(places: &Places, node: &Node) -> Result<()> {
    wait_within(places, node, ready::PATIENCE)
}

/// Waits as `wait` does for a node that went on: its process lives, so that it is soon seen up, or never without help.
fn wait_or_gossip_anew(places: &Places, node: &Node) -> Result<()> {
    if wait_within(places, node, GOSSIP).is_ok() {
        return Ok(());
    }
    let software = JARS.software(places)?;
    running(places, node).iter().try_for_each(|node| nodetool::gossip_anew(node, &software))?;
    wait(places, node)
}

fn wait_within(places: &Places, node: &Node, patience: Duration) -> Result<()> {
    let step = Step::begin(format!("waiting for Cassandra node {}", node.number()));
    let nodes = running(places, node);
    let processes: Vec<_> = nodes.iter().map(|node| node.process().clone()).collect();
    until_within(patience, &processes, || {
        let checked = if node.wants_login() { ready::check_login(node) } else { ready::check_agreed(&nodes) };
        checked.inspect_err(|error| step.detail(format!("{error:#}")))
    })?;
    step.done(&format!("Cassandra node {} is ready", node.number()));
    Ok(())
}

/// Returns the node, then those of its peers that run.
fn running(places: &Places, node: &Node) -> Vec<Node> {
    let mut nodes = vec![node.clone()];
    if !node.wants_login() {
        let peers = RING.map(|number| Node::new(places, number)).into_iter();
        nodes.extend(
            peers.filter(|peer| peer.number() != node.number() && peer.state() == ProcessState::Running),
        );
    }
    nodes
}

/// The time in which a node that went on is seen up by its peers, also on a busy machine.
const GOSSIP: Duration = Duration::from_secs(45);
