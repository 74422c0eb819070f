//! Checks whether nodes are a cluster. A port that accepts is not enough: every node must know the other nodes, and a write
//! that all of them confirm must pass through each of them.

use std::{net::TcpStream, sync::Arc, time::Duration};

use anyhow::{Context, Result, bail};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};

use super::{
    cql::{self, Consistency, Session},
    node::{Node, RING},
};

/// Checks that nodes are a whole cluster, and makes the table that the probes write to.
pub(super) fn check_ring(nodes: &[Node]) -> Result<()> {
    each(nodes, |session| {
        let peers = session.query("SELECT peer FROM system.peers", Consistency::One)?;
        if usize::try_from(peers)? + 1 < RING.len() {
            bail!("it knows {peers} of its {} peers", RING.len() - 1);
        }
        // Answered only when the node sees all nodes up. A table that was created earlier may still be unknown to some.
        session.query(READ_OF_ALL, Consistency::All)
    })?;
    for statement in PROBE_TABLE {
        each(&nodes[..1], |session| session.query(statement, Consistency::One))?;
    }
    check_agreed(nodes)
}

/// Checks that each of these nodes, which are all that live, sees the other nodes up.
pub(super) fn check_agreed(nodes: &[Node]) -> Result<()> {
    let consistency = match nodes.len() {
        0 | 1 => Consistency::One,
        2 => Consistency::Quorum,
        _ => Consistency::All,
    };
    each(nodes, |session| session.query(PROBE_WRITE, consistency))
}

/// Checks that the node lets in a client with the password, over TLS with the CA of the node's last start.
pub(super) fn check_login(node: &Node) -> Result<()> {
    let mut session = Session::login(tls(node)?, "cassandra", "cassandra")?;
    session.query("SELECT key FROM system.local", Consistency::One).map(drop)
}

/// Asks nodes, one after the other, until an answer is an error.
fn each(nodes: &[Node], ask: impl Fn(&mut Session<TcpStream>) -> Result<u32>) -> Result<()> {
    nodes.iter().try_for_each(|node| {
        let session = cql::connect(node.cql_address()).and_then(Session::open);
        let asked = session.and_then(|mut session| ask(&mut session));
        asked.map(drop).with_context(|| format!("node {}", node.number()))
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

/// The time that nodes have to become ready. Generous: the machine may be compiling at the same time.
pub(super) const PATIENCE: Duration = Duration::from_secs(420);

/// A read from a table that Cassandra itself keeps on three nodes.
const READ_OF_ALL: &str = "SELECT parent_id FROM system_distributed.parent_repair_history \
                           WHERE parent_id = 50554d6e-29bb-11e5-b345-feff819cdc9f";
const PROBE_TABLE: [&str; 2] = [
    "CREATE KEYSPACE IF NOT EXISTS ylock_probe \
     WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}",
    "CREATE TABLE IF NOT EXISTS ylock_probe.seen (id int PRIMARY KEY, at timestamp)",
];
const PROBE_WRITE: &str = "INSERT INTO ylock_probe.seen (id, at) VALUES (1, toTimestamp(now()))";
