//! A node that is cut off from its peers but not from clients, without the rights that a packet filter needs.
//!
//! Cassandra takes each message of a peer from its connection into a queue of its stage. A stage without a thread leaves it there:
//! what comes from peers lies unread, requests as well as answers, while the threads that serve clients and gossip go on. So
//! nobody is told that the node is of no use: its peers and the driver take it for well.

use std::thread;

use anyhow::{Result, bail};

use super::node::{Node, Software};
use super::nodetool::run as nodetool;

pub(super) fn cut(node: &Node, software: &Software) -> Result<()> {
    set(node, software, &STAGES.map(|(stage, _)| (stage, 0)))
}

pub(super) fn join(node: &Node, software: &Software) -> Result<()> {
    set(node, software, &STAGES)
}

/// All at once: each takes a Java machine of its own.
fn set(node: &Node, software: &Software, stages: &[(&str, u32)]) -> Result<()> {
    let set = |&(stage, threads): &(&str, u32)| {
        nodetool(node, software, &["setconcurrency", stage, &threads.to_string()])
    };
    let said = thread::scope(|scope| {
        let all: Vec<_> = stages.iter().map(|stage| scope.spawn(move || set(stage))).collect();
        all.into_iter().map(|one| one.join().expect("no panic")).collect::<Result<String>>()
    })?;
    // Of one stage Cassandra says that it failed, after it has done it: so what counts is what it says when it is asked.
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

/// What peers answer and what they ask, with the threads of `assets/cassandra.yaml`. Their writes still arrive: nobody waits for
/// those of one node.
const STAGES: [(&str, u32); 2] = [("RequestResponseStage", 2), ("ReadStage", 16)];
