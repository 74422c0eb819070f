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
    let output = call(node, software, &["flush"])?;
    ensure!(output.status.success(), "nodetool flush failed: {}", all_of(&output));
    Ok(())
}
