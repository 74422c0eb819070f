//! Checks how many replicas the keyspace has.

use std::collections::HashMap;

use scylla::client::session::Session;
use ylock_core::{Error, ErrorKind, Result};

use super::look::rows;
use super::meet::Asker;
use crate::options::{CassandraOptions, Consistency};

const REPLICATION: &str = "SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = ?";
/// The fewest replicas of which one may fail.
const ENOUGH: u32 = 3;
const FEW: &str = "fewer than three replicas: no lock can be acquired while one node is down";

/// Refuses a keyspace of which no quorum can ever answer, and warns where one does not survive the loss of a node.
pub(super) async fn check(asker: Asker<'_>, options: &CassandraOptions) -> Result<()> {
    let Some((replicas, datacenter)) = found(asker, options).await? else { return Ok(()) };
    enough_nodes(replicas, nodes(asker.session, datacenter), options.keyspace())?;
    if replicas < ENOUGH {
        tracing::warn!(
            keyspace = options.keyspace(),
            replicas,
            "the keyspace has {FEW}. Raise its replication factor"
        );
    }
    Ok(())
}

/// Returns by how many replicas a quorum is counted, in words.
pub(super) async fn words(asker: Asker<'_>, options: &CassandraOptions) -> Result<String> {
    let replicas = found(asker, options).await?.map_or(0, |(replicas, _)| replicas);
    Ok(if replicas < ENOUGH { format!("{replicas}, {FEW}") } else { replicas.to_string() })
}

/// Returns the number of replicas by which a quorum is counted, and of which data centre if not of all; `None` without a keyspace.
async fn found<'a>(
    asker: Asker<'_>,
    options: &'a CassandraOptions,
) -> Result<Option<(u32, Option<&'a str>)>> {
    let found = rows::<(HashMap<String, String>,)>(asker, REPLICATION, &[options.keyspace()]).await?;
    let Some((replication,)) = found.first() else { return Ok(None) };
    Ok(Some(match (options.consistency(), options.datacenter()) {
        (Consistency::LocalQuorum, Some(datacenter)) => {
            (in_datacenter(replication, datacenter, options.keyspace())?, Some(datacenter))
        }
        _ => (everywhere(replication), None),
    }))
}

/// Returns the number of nodes of the cluster, or of one data centre, whether they are up or not.
fn nodes(session: &Session, datacenter: Option<&str>) -> usize {
    let counts = |other: Option<&str>| {
        datacenter.is_none_or(|datacenter| other.is_none_or(|other| other == datacenter))
    };
    let cluster = session.get_cluster_state();
    cluster.get_nodes_info().iter().filter(|node| counts(node.datacenter.as_deref())).count()
}

/// Refuses a factor that leaves too few nodes for a quorum: Cassandra takes a factor that is larger than the cluster, and then never
/// finds the replicas.
fn enough_nodes(replicas: u32, nodes: usize, keyspace: &str) -> Result<()> {
    let quorum = replicas / 2 + 1;
    if usize::try_from(quorum).unwrap_or(usize::MAX) <= nodes {
        return Ok(());
    }
    let message = format!(
        "keyspace {keyspace} has {replicas} replicas, so a quorum is {quorum}, but there are only {nodes} nodes: no lock can be \
         acquired. Lower the replication factor (ALTER KEYSPACE … WITH replication, and replication=… in the URL of clients that \
         create it), or add nodes"
    );
    Err(Error::new(ErrorKind::Config, message).with_engine(crate::NAME))
}

/// Returns the number of replicas in all data centres together.
fn everywhere(replication: &HashMap<String, String>) -> u32 {
    replication.iter().filter(|(name, _)| *name != "class").map(|(_, factor)| number(factor)).sum()
}

/// Returns the number of replicas in one data centre.
fn in_datacenter(replication: &HashMap<String, String>, datacenter: &str, keyspace: &str) -> Result<u32> {
    // SimpleStrategy knows no data centres: the factor is that of the whole cluster.
    let factor = replication.get(datacenter).or_else(|| replication.get("replication_factor"));
    factor.map(|factor| number(factor)).ok_or_else(|| {
        let message = format!(
            "keyspace {keyspace} has no replicas in data centre {datacenter:?}: name another one with \
             datacenter=…, or add replicas there"
        );
        Error::new(ErrorKind::Config, message).with_engine(crate::NAME)
    })
}

/// Reads a factor such as `3`, or `3/1` where one replica is transient.
fn number(factor: &str) -> u32 {
    factor.split('/').next().and_then(|all| all.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replication(pairs: &[(&str, &str)]) -> HashMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_quorum_that_there_are_no_nodes_for_is_refused() {
        assert!(enough_nodes(3, 2, "ks").is_ok());
        assert!(enough_nodes(9, 5, "ks").is_ok());
        let error = enough_nodes(9, 3, "ks").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.to_string().contains("ALTER KEYSPACE"), "{error}");
    }

    #[test]
    fn factors_are_added_up_over_data_centres() {
        let two =
            replication(&[("class", "o.a.c.locator.NetworkTopologyStrategy"), ("a", "3"), ("b", "2/1")]);
        assert_eq!(everywhere(&two), 5);
        assert_eq!(in_datacenter(&two, "b", "ks").unwrap(), 2);
        assert!(in_datacenter(&two, "c", "ks").unwrap_err().to_string().contains("\"c\""));
        let simple = replication(&[("class", "o.a.c.locator.SimpleStrategy"), ("replication_factor", "1")]);
        assert_eq!(everywhere(&simple), 1);
    }
}
