//! Starts clusters, all nodes at the same time, so that in the end either all nodes work or none of them was started.

use anyhow::Result;
use rustix::process::Signal;

use super::{
    names,
    node::{Node, Software},
    ready,
};
use crate::{
    daemon::{self, ProcessState},
    jars::Jars,
    places::Places,
    progress::Step,
    tools,
};

pub(super) fn start(clusters: &[Vec<Node>], places: &Places) -> Result<()> {
    let all = clusters.concat();
    let dead: Vec<_> = all.iter().filter(|node| node.state().is_over()).collect();
    let step = if dead.is_empty() {
        Step::begin(format!("checking Cassandra {}, running already", names(&all)))
    } else {
        let software = software(places)?;
        let step = Step::begin(format!("starting Cassandra {}", names(dead.iter().copied())));
        return start_dead(clusters, &software, step);
    };
    wait(clusters, &step)?;
    step.done(&format!("found Cassandra {} running and ready", names(&all)));
    Ok(())
}

fn start_dead(clusters: &[Vec<Node>], software: &Software, step: Step) -> Result<()> {
    let mut started = Started(Vec::new());
    for nodes in clusters {
        let dead: Vec<_> = nodes.iter().filter(|node| node.state().is_over()).collect();
        dead.iter().try_for_each(|node| node.check_ports())?;
        for node in &dead {
            // A node that died alone keeps its data: the other nodes remember it.
            if dead.len() == nodes.len() || !node.is_prepared() {
                node.prepare()?;
            }
            node.start(software)?;
            started.0.push(Node::clone(node));
        }
    }
    wait(clusters, &step)?;
    step.done(&format!("started Cassandra {}", names(&started.0)));
    started.0.clear();
    Ok(())
}

fn wait(clusters: &[Vec<Node>], step: &Step) -> Result<()> {
    for nodes in clusters {
        for node in nodes.iter().filter(|node| node.state() == ProcessState::Paused) {
            node.daemon().signal(Signal::CONT)?;
        }
        match nodes.as_slice() {
            [node] if node.wants_login() => ready::until_login(node, step)?,
            ring => ready::until_cluster(ring, step)?,
        }
    }
    Ok(())
}

pub(super) fn software(places: &Places) -> Result<Software> {
    Ok(Software { java: tools::java()?, jars: JARS.get(places)? })
}

const JARS: Jars = Jars {
    name: "Cassandra",
    version: "5.0.7",
    pom: include_str!("assets/pom.xml"),
    server: "cassandra-all",
    megabytes: 67,
};

/// Nodes that are not known to work yet. They are stopped when this is dropped; their logs stay.
#[derive(Debug)]
struct Started(Vec<Node>);

impl Drop for Started {
    fn drop(&mut self) {
        let daemons: Vec<_> = self.0.iter().map(Node::daemon).collect();
        if let Err(error) = daemon::stop_all(&daemons) {
            eprintln!("{error}");
        }
    }
}
