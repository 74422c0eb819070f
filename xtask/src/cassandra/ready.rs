//! Waits until nodes are a cluster. A port that accepts is not enough: every node must know the other nodes, and a write
//! that all of them confirm must pass through each of them.

use std::{
    fmt::Display,
    net::TcpStream,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};

use super::{
    cql::{self, Consistency, Session},
    node::{Node, RING},
};
use crate::{interrupt, progress::Step, tail};

/// Waits for a whole cluster of `nodes`, and makes the table that the probes write to.
pub(crate) fn until_cluster(nodes: &[Node], step: &Step) -> Result<()> {
    until(nodes, step, |node| {
        let mut session = Session::open(cql::connect(node.cql_address())?)?;
        let peers = session.query("SELECT peer FROM system.peers", Consistency::One)?;
        if usize::try_from(peers)? + 1 < RING.len() {
            bail!("it knows {peers} of its {} peers", RING.len() - 1);
        }
        // Answered only when the node sees all nodes up. A table that was created earlier may still be unknown to some.
        session.query(READ_OF_ALL, Consistency::All)?;
        Ok(())
    })?;
    until(&nodes[..1], step, |node| {
        let mut session = Session::open(cql::connect(node.cql_address())?)?;
        for statement in PROBE_TABLE {
            session.query(statement, Consistency::One)?;
        }
        Ok(())
    })?;
    until_agreed(nodes, step)
}

/// Waits until each of these nodes, which are all that live, sees the other nodes up.
pub(crate) fn until_agreed(nodes: &[Node], step: &Step) -> Result<()> {
    let consistency = match nodes.len() {
        0 | 1 => Consistency::One,
        2 => Consistency::Quorum,
        _ => Consistency::All,
    };
    until(nodes, step, |node| {
        let mut session = Session::open(cql::connect(node.cql_address())?)?;
        session.query(PROBE_WRITE, consistency)?;
        Ok(())
    })
}

/// Waits until the node lets in a client with the password, over TLS with the CA of the node's last start.
pub(crate) fn until_login(node: &Node, step: &Step) -> Result<()> {
    until(std::slice::from_ref(node), step, |node| {
        let mut session = Session::login(tls(node)?, "cassandra", "cassandra")?;
        session.query("SELECT key FROM system.local", Consistency::One)?;
        Ok(())
    })
}

fn tls(node: &Node) -> Result<StreamOwned<ClientConnection, TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(node.ca())?)?;
    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let connection =
        ClientConnection::new(Arc::new(config), ServerName::from(std::net::IpAddr::V4(node.address())))?;
    Ok(StreamOwned::new(connection, cql::connect(node.cql_address())?))
}

/// Tries `check` again until it succeeds for every node, or a node has died, or the time is over.
fn until(nodes: &[Node], step: &Step, check: impl Fn(&Node) -> Result<()>) -> Result<()> {
    let began = Instant::now();
    for node in nodes {
        while let Err(error) = check(node) {
            step.detail(format!("node {}: {error}", node.number()));
            for node in nodes {
                if node.life().is_over() {
                    return failed(node, "has ended");
                }
            }
            if began.elapsed() > PATIENCE {
                return failed(node, format_args!("is not ready after {} s: {error}", PATIENCE.as_secs()));
            }
            interrupt::pause(Duration::from_millis(100))?;
        }
    }
    Ok(())
}

fn failed(node: &Node, what: impl Display) -> Result<()> {
    bail!("Cassandra node {} {what}; {}", node.number(), tail::of_file(&node.log()))
}

/// The time that nodes have to become ready. Generous: the machine may be compiling at the same time.
const PATIENCE: Duration = Duration::from_secs(420);

/// A read from a table that Cassandra itself keeps on three nodes.
const READ_OF_ALL: &str = "SELECT parent_id FROM system_distributed.parent_repair_history \
                           WHERE parent_id = 50554d6e-29bb-11e5-b345-feff819cdc9f";
const PROBE_TABLE: [&str; 2] = [
    "CREATE KEYSPACE IF NOT EXISTS ylock_probe \
     WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}",
    "CREATE TABLE IF NOT EXISTS ylock_probe.seen (id int PRIMARY KEY, at timestamp)",
];
const PROBE_WRITE: &str = "INSERT INTO ylock_probe.seen (id, at) VALUES (1, toTimestamp(now()))";
