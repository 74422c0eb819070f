//! Calls `nodetool`, Cassandra's own tool for the operator of a node.

use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};

use super::node::Node;
use crate::jars::Software;

/// Returns all that the tool prints, whether it failed or not.
pub(super) fn run(node: &Node, software: &Software, arguments: &[&str]) -> Result<String> {
    call(node, software, arguments).map(|output| all_of(&output))
}

fn call(node: &Node, software: &Software, arguments: &[&str]) -> Result<Output> {
    Command::new(&software.java.program)
        .arg(format!("@{}", node.conf().join("jvm.options").display()))
        .arg(format!("-Dlogback.configurationFile={}", node.conf().join("logback.xml").display()))
        // It starts in half the time if Java does not optimise for later.
        .args(["-XX:TieredStopAtLevel=1", "-Xms16m", "-cp"])
        .arg(format!("{}/*", software.jars.display()))
        .args(["org.apache.cassandra.tools.NodeTool", "-h", "127.0.0.1", "-p", &node.jmx_port().to_string()])
        .args(arguments)
        .output()
        .context("cannot run nodetool")
}

fn all_of(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

/// Writes what a node has in memory to its disk. A node that is killed within a tenth of a second after a write loses the write:
/// the commit log is read only up to its last mark.
pub(super) fn flush(node: &Node, software: &Software) -> Result<()> {
    succeed(node, software, "flush")
}

/// Lets a node gossip as if it had just started. A peer that started while the node was stopped, and whose first request (the
/// echo) came in the moment at which the node went on, never asks again and sees the node down for ever: the node, whose clock is
/// not right yet, has taken the request for one that is long over.
pub(super) fn gossip_anew(node: &Node, software: &Software) -> Result<()> {
    succeed(node, software, "disablegossip")?;
    succeed(node, software, "enablegossip")
}

fn succeed(node: &Node, software: &Software, command: &str) -> Result<()> {
    let output = call(node, software, &[command])?;
    ensure!(output.status.success(), "nodetool {command} failed: {}", all_of(&output));
    Ok(())
}
