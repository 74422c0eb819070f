//! Runs a Redis Cluster of three masters, formed as by `redis-cli --cluster create`, a program of another package.

use std::path::PathBuf;

use anyhow::{Result, bail};

use super::{
    answer::{Answer, ask},
    server::Server,
};
use crate::store::{Process, Store, addresses, free_ports};

const VARIABLE: &str = "YLOCK_TEST_REDIS_CLUSTER";

#[derive(Debug)]
pub(super) struct Cluster {
    folder: PathBuf,
}

impl Cluster {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    fn masters(&self) -> [Server; 3] {
        [1, 2, 3].map(|number| Server::new(self.folder.join(format!("master{number}"))))
    }
}

impl Store for Cluster {
    fn name(&self) -> &'static str {
        "Redis Cluster"
    }

    fn variable(&self) -> &'static str {
        VARIABLE
    }

    fn processes(&self) -> Vec<Process> {
        self.masters().map(|master| master.process().clone()).to_vec()
    }

    fn start(&self) -> Result<()> {
        let masters = self.masters();
        let [a, b, c, bus_a, bus_b, bus_c] = free_ports();
        let ports = [(a, bus_a), (b, bus_b), (c, bus_c)];
        for (master, (port, bus)) in masters.iter().zip(ports) {
            // A server that knows old peers cannot be told to form a cluster.
            master.process().forget("nodes.conf")?;
            // The port of the bus is named, because by default it is the port plus 10000, which may be taken or too large.
            master.start(port, &["--cluster-enabled", "yes", "--cluster-port", &bus.to_string()])?;
        }
        masters.iter().try_for_each(Server::await_answer)?;
        formation(ports).into_iter().try_for_each(|(port, command)| ask(port, &command).map(drop))
    }

    fn check(&self) -> Result<()> {
        self.masters().iter().try_for_each(|master| {
            let port = master.process().port()?;
            check(&ask(port, "CLUSTER INFO")?)
        })
    }

    fn address(&self) -> Result<String> {
        addresses(&self.processes())
    }
}

/// Returns the commands, each with the port to send it to, that make a cluster of three lonely servers.
fn formation(ports: [(u16, u16); 3]) -> Vec<(u16, String)> {
    let mut commands = Vec::new();
    for (number, (port, _)) in ports.into_iter().enumerate() {
        // Before they meet: two masters with the same epoch would have to agree first which of them takes another epoch.
        commands.push((port, format!("CLUSTER SET-CONFIG-EPOCH {}", number + 1)));
        let (first, last) = (number * SLOTS / 3, (number + 1) * SLOTS / 3 - 1);
        commands.push((port, format!("CLUSTER ADDSLOTSRANGE {first} {last}")));
    }
    let [(first, _), others @ ..] = ports;
    // The second and the third server hear of each other from the first.
    commands.extend(others.map(|(port, bus)| (first, format!("CLUSTER MEET 127.0.0.1 {port} {bus}"))));
    commands
}

/// Checks what one of the masters says about the cluster.
fn check(info: &Answer) -> Result<()> {
    let (state, known) = (info.line("cluster_state")?, info.line("cluster_known_nodes")?);
    if state != "ok" || known != "3" {
        bail!("its state is {state}, and it knows {known} of 3 nodes");
    }
    Ok(())
}

const SLOTS: usize = 16384;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slot_has_one_master() {
        let commands = formation([(1, 11), (2, 12), (3, 13)]);
        let ranges: Vec<_> = commands
            .iter()
            .filter_map(|(_, command)| command.strip_prefix("CLUSTER ADDSLOTSRANGE "))
            .collect();
        assert_eq!(ranges, ["0 5460", "5461 10921", "10922 16383"]);
    }

    #[test]
    fn the_first_meets_the_others_at_last() {
        let commands = formation([(1, 11), (2, 12), (3, 13)]);
        let last: Vec<_> = commands[6..].iter().map(|(port, command)| (*port, command.as_str())).collect();
        assert_eq!(last, [(1, "CLUSTER MEET 127.0.0.1 2 12"), (1, "CLUSTER MEET 127.0.0.1 3 13")]);
    }

    #[test]
    fn a_cluster_that_lacks_a_node_is_not_ready() {
        let info = |state: &str, known: u32| {
            Answer::Text(format!("cluster_state:{state}\r\ncluster_known_nodes:{known}\r\n"))
        };
        check(&info("ok", 3)).unwrap();
        check(&info("ok", 2)).unwrap_err();
        check(&info("fail", 3)).unwrap_err();
    }
}
