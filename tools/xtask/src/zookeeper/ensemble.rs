//! Runs three ZooKeeper servers that elect a leader among them.

use anyhow::{Result, bail};

use super::{JARS, server::Server};
use crate::{
    places::Places,
    store::{Process, Store, addresses, free_ports},
};

#[derive(Debug)]
pub(super) struct Ensemble {
    places: Places,
}

impl Ensemble {
    pub(super) fn new(places: &Places) -> Self {
        Self { places: places.clone() }
    }

    fn servers(&self) -> [Server; 3] {
        let folder = self.places.root().join("zookeeper-ensemble");
        [1, 2, 3].map(|number| Server::new(folder.join(format!("server{number}"))))
    }
}

impl Store for Ensemble {
    fn name(&self) -> &'static str {
        "ZooKeeper ensemble"
    }

    fn variable(&self) -> &'static str {
        "YLOCK_TEST_ZOOKEEPER_ENSEMBLE"
    }

    fn processes(&self) -> Vec<Process> {
        self.servers().map(|server| server.process().clone()).to_vec()
    }

    fn start(&self) -> Result<()> {
        let software = JARS.software(&self.places)?;
        let [a, b, c, ports @ ..] = free_ports::<9>();
        let peers = peers(ports);
        for (index, (server, port)) in self.servers().iter().zip([a, b, c]).enumerate() {
            server.start(&software, port, index + 1, &peers)?;
        }
        Ok(())
    }

    fn check(&self) -> Result<()> {
        let modes = self.servers().iter().map(Server::mode).collect::<Result<Vec<_>>>()?;
        check(&modes)
    }

    fn address(&self) -> Result<String> {
        addresses(&self.processes())
    }
}

/// Returns the lines that say where each server listens for the others: one port for messages of the leader, one for elections.
fn peers(ports: [u16; 6]) -> String {
    let pairs = ports.chunks_exact(2).enumerate();
    let peer =
        |(index, pair): (usize, &[u16])| format!("server.{}=127.0.0.1:{}:{}\n", index + 1, pair[0], pair[1]);
    pairs.map(peer).collect()
}

fn check(modes: &[String]) -> Result<()> {
    let count = |wanted: &str| modes.iter().filter(|mode| *mode == wanted).count();
    if count("leader") != 1 || count("follower") != 2 {
        bail!("the servers are not a leader with two followers, but: {}", modes.join(", "));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_server_has_two_ports_for_the_others() {
        assert_eq!(
            peers([1, 2, 3, 4, 5, 6]),
            "server.1=127.0.0.1:1:2\nserver.2=127.0.0.1:3:4\nserver.3=127.0.0.1:5:6\n"
        );
    }

    #[test]
    fn an_ensemble_has_one_leader() {
        let check = |modes: &str| check(&modes.split(' ').map(str::to_owned).collect::<Vec<_>>());
        check("follower leader follower").unwrap();
        check("follower follower follower").unwrap_err();
        check("leader leader follower").unwrap_err();
        check("leader follower").unwrap_err();
    }
}
