//! Cuts a node off from its peers but not from clients, without the rights that a packet filter needs.
//!
//! Cassandra takes each message of a peer from its connection into the queue of a stage. A stage without a thread leaves the message there:
//! requests and answers of peers lie unread, while the threads that serve clients and gossip go on. So neither the peers nor the driver
//! notice that the node is of no use: they take it for healthy.

use std::thread;

use anyhow::{Result, bail};

use super::{node::Node, nodetool::run as nodetool};
use crate::jars::Software;

pub(super) fn cut(node: &Node, software: &Software) -> Result<()> {
    set(node, software, &STAGES.map(|(stage, _)| (stage, 0)))
}

pub(super) fn join(node: &Node, software: &Software) -> Result<()> {
    set(node, software, &STAGES)
}

/// Sets the number of threads of these stages, all at once: each call starts a Java machine of its own.
fn set(node: &Node, software: &Software, stages: &[(&str, u32)]) -> Result<()> {
    let set = |&(stage, threads): &(&str, u32)| {
        nodetool(node, software, &["setconcurrency", stage, &threads.to_string()])
    };
    let said = thread::scope(|scope| {
        let all: Vec<_> = stages.iter().map(|stage| scope.spawn(move || set(stage))).collect();
        all.into_iter().map(|one| one.join().expect("no panic")).collect::<Result<String>>()
    })?;
    // For one stage Cassandra reports a failure after it has set the number: so only the numbers that it reports afterwards count.
    let found = nodetool(node, software, &["getconcurrency"])?;
    for (stage, threads) in stages {
        let threads = threads.to_string();
        let is_set = |line: &str| line.starts_with(stage) && line.split_whitespace().last() == Some(&threads);
        if !found.lines().any(is_set) {
            bail!("{stage} has not {threads} threads: {said}{found}");
        }
    }
    Ok(())
}

/// The stages of the answers and the reads of peers, with their threads in `assets/cassandra.yaml`. Writes of peers still arrive: no
/// coordinator waits for the writes of one node.
const STAGES: [(&str, u32); 2] = [("RequestResponseStage", 2), ("ReadStage", 16)];
