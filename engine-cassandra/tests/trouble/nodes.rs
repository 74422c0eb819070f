//! Nodes of the cluster, broken and mended by `xtask`, which has started them.

use std::process::Command;

/// In which way a node fails.
#[derive(Clone, Copy, Debug)]
pub(crate) enum How {
    /// `kill -9`: its connections end at once.
    Killed,
    /// `SIGSTOP`: its connections stay open, and it answers nothing.
    Stopped,
    /// It answers clients and is seen by its peers, but hears nothing that they say: as a coordinator it reaches no majority.
    Cut,
}

/// Nodes that are broken. Dropping it mends them, so that a test that fails does not spoil the next one.
#[derive(Debug)]
pub(crate) struct Broken {
    nodes: Vec<u8>,
    how: How,
}

impl Broken {
    pub(crate) async fn one(node: u8, how: How) -> Self {
        Self::all(vec![node], how).await
    }

    pub(crate) async fn two(one: u8, other: u8, how: How) -> Self {
        Self::all(vec![one, other], how).await
    }

    async fn all(nodes: Vec<u8>, how: How) -> Self {
        let action = match how {
            How::Killed => "kill",
            How::Stopped => "stop",
            How::Cut => "cut",
        };
        let broken = Self { nodes, how };
        let nodes = broken.nodes.clone();
        tokio::task::spawn_blocking(move || nodes.into_iter().for_each(|node| xtask(node, action)))
            .await
            .unwrap();
        broken
    }

    /// Brings them back and waits until the others see them.
    pub(crate) async fn mend(self) {
        tokio::task::spawn_blocking(move || drop(self)).await.unwrap();
    }
}

impl Drop for Broken {
    fn drop(&mut self) {
        for &node in &self.nodes {
            match self.how {
                How::Killed => xtask(node, "start"),
                How::Stopped => {
                    xtask(node, "cont");
                    xtask(node, "wait");
                }
                How::Cut => {
                    xtask(node, "join");
                    xtask(node, "wait");
                }
            }
        }
    }
}

/// Makes sure that a node finds again what was written to it, also after it is killed.
pub(crate) async fn flush(node: u8) {
    tokio::task::spawn_blocking(move || xtask(node, "flush")).await.unwrap();
}

/// Sets by how many seconds the clock of a node is ahead of this machine's.
pub(crate) fn set_clock(node: u8, ahead: i64) {
    run(&["clock", &node.to_string(), &ahead.to_string()]);
}

fn xtask(node: u8, action: &str) {
    run(&["node", &node.to_string(), action]);
}

fn run(arguments: &[&str]) {
    let program = std::env::var_os("YLOCK_XTASK")
        .expect("YLOCK_XTASK is the program that started the nodes: run `cargo xtask test cassandra`");
    let called = arguments.join(" ");
    let output = Command::new(program).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("xtask {called}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    // While a test unwinds a second panic would end the whole process without a word.
    if !output.status.success() {
        assert!(std::thread::panicking(), "xtask {called}: {said}");
        eprintln!("xtask {called}: {said}");
    }
}
