//! Runs a master with one replica, and three Sentinels that watch both.

use std::path::PathBuf;

use anyhow::{Result, bail};

use super::{
    answer::{Answer, ask},
    server::Server,
};
use crate::store::{Process, Store, addresses, free_ports, until};

const VARIABLE: &str = "YLOCK_TEST_REDIS_SENTINEL";

#[derive(Debug)]
pub(super) struct Sentinels {
    folder: PathBuf,
}

impl Sentinels {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Returns the master and the replica. Which of them is the master may have changed since their start.
    fn data(&self) -> [Server; 2] {
        ["data1", "data2"].map(|name| Server::new(self.folder.join(name)))
    }

    fn sentinels(&self) -> [Server; 3] {
        [1, 2, 3].map(|number| Server::new(self.folder.join(format!("sentinel{number}"))))
    }

    fn start_data(&self) -> Result<u16> {
        let [master, replica] = self.data();
        let [master_port, replica_port] = free_ports();
        // By default the master waits 5 s for more replicas.
        let at_once = ["--repl-diskless-sync-delay", "0"];
        master.start(master_port, &at_once)?;
        replica.start(
            replica_port,
            &[&at_once[..], &["--replicaof", "127.0.0.1", &master_port.to_string()]].concat(),
        )?;
        // Sentinels ask the master for its replicas when they start, and then only after 10 s.
        until(&[master.process().clone(), replica.process().clone()], || self.check_data())?;
        Ok(master_port)
    }

    fn check_data(&self) -> Result<()> {
        let [a, b] = self.data();
        check_data(&[info(&a)?, info(&b)?])
    }
}

impl Store for Sentinels {
    fn name(&self) -> &'static str {
        "Redis with Sentinels"
    }

    fn variable(&self) -> &'static str {
        VARIABLE
    }

    fn processes(&self) -> Vec<Process> {
        self.data().iter().chain(&self.sentinels()).map(|server| server.process().clone()).collect()
    }

    fn start(&self) -> Result<()> {
        let master = self.start_data()?;
        let ports: [u16; 3] = free_ports();
        for (sentinel, port) in self.sentinels().iter().zip(ports) {
            sentinel.start_sentinel(port, &configuration(port, master))?;
        }
        Ok(())
    }

    fn check(&self) -> Result<()> {
        self.check_data()?;
        let seen = self.sentinels().iter().map(seen_by).collect::<Result<Vec<_>>>()?;
        seen.iter().try_for_each(check_seen)?;
        let masters = seen.iter().map(|seen| seen.field("port")).collect::<Result<Vec<_>>>()?;
        if masters.iter().any(|master| *master != masters[0]) {
            bail!("the Sentinels name different masters: {}", masters.join(", "));
        }
        Ok(())
    }

    fn address(&self) -> Result<String> {
        let sentinels = self.sentinels().map(|sentinel| sentinel.process().clone());
        Ok(format!("{}/{SERVICE}", addresses(&sentinels)?))
    }
}

fn configuration(port: u16, master: u16) -> String {
    include_str!("assets/sentinel.conf")
        .replace("{port}", &port.to_string())
        .replace("{master}", &master.to_string())
        .replace("{service}", SERVICE)
}

fn info(server: &Server) -> Result<Answer> {
    ask(server.process().port()?, "INFO replication")
}

fn seen_by(sentinel: &Server) -> Result<Answer> {
    ask(sentinel.process().port()?, &format!("SENTINEL MASTER {SERVICE}"))
}

/// Checks what both servers say about their replication.
fn check_data(both: &[Answer; 2]) -> Result<()> {
    let has =
        |name: &str, value: &str| both.iter().any(|info| info.line(name).is_ok_and(|said| said == value));
    if !has("role", "master") || !has("master_link_status", "up") {
        bail!("the servers are not a master with a replica that follows it");
    }
    Ok(())
}

/// Checks what one of the Sentinels says about the master.
fn check_seen(master: &Answer) -> Result<()> {
    for (name, wanted) in [("flags", "master"), ("num-slaves", "1"), ("num-other-sentinels", "2")] {
        let said = master.field(name)?;
        if said != wanted {
            bail!("a Sentinel says {name} {said}, not {wanted}");
        }
    }
    Ok(())
}

const SERVICE: &str = "ylock";

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(flags: &str, replicas: u32, others: u32) -> Answer {
        let text = format!("name ylock flags {flags} num-slaves {replicas} num-other-sentinels {others}");
        Answer::List(text.split(' ').map(|word| Answer::Text(word.to_owned())).collect())
    }

    #[test]
    fn a_sentinel_is_ready_when_it_knows_all_others() {
        check_seen(&seen("master", 1, 2)).unwrap();
        for missing in [seen("master", 0, 2), seen("master", 1, 1), seen("s_down,master", 1, 2)] {
            check_seen(&missing).unwrap_err();
        }
    }

    #[test]
    fn the_replica_has_to_follow_the_master() {
        let master = || Answer::Text("role:master\r\nconnected_slaves:1\r\n".to_owned());
        let replica = |link: &str| Answer::Text(format!("role:slave\r\nmaster_link_status:{link}\r\n"));
        check_data(&[master(), replica("up")]).unwrap();
        check_data(&[replica("up"), master()]).unwrap();
        check_data(&[master(), replica("down")]).unwrap_err();
        check_data(&[master(), master()]).unwrap_err();
        check_data(&[replica("up"), replica("up")]).unwrap_err();
    }

    #[test]
    fn a_sentinel_is_told_its_port_and_the_master() {
        let text = configuration(7001, 7000);
        assert!(text.contains("port 7001\n") && text.contains("sentinel monitor ylock 127.0.0.1 7000 2\n"));
        assert!(!text.contains('{'), "{text}");
    }
}
