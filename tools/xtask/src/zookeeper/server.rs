//! Runs one ZooKeeper server, alone or of an ensemble.

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    path::PathBuf,
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result};

use crate::{jars::Software, store::Process};

#[derive(Clone, Debug)]
pub(super) struct Server {
    process: Process,
}

impl Server {
    pub(super) fn new(folder: PathBuf) -> Self {
        let configuration = folder.join("zoo.cfg").display().to_string();
        Self { process: Process::new(folder, configuration) }
    }

    pub(super) fn process(&self) -> &Process {
        &self.process
    }

    /// Starts the server without data. `number` and `peers` are for an ensemble.
    pub(super) fn start(&self, software: &Software, port: u16, number: usize, peers: &str) -> Result<()> {
        self.process.forget("data")?;
        self.process.write("data/myid", &number.to_string())?;
        let logback = self.process.write("logback.xml", include_str!("assets/logback.xml"))?;
        let configuration = self.process.write("zoo.cfg", &(self.configuration(port) + peers))?;
        let mut command = Command::new(&software.java.program);
        command
            .args(["-Xmx256m", "-XX:+UseSerialGC"])
            .arg(format!("-Dlogback.configurationFile={}", logback.display()))
            // A disk that stands still for seconds, as those of shared machines do, would cost locks their leases, in tests of other
            // things. What a server has written outlives its process without this; no test takes the power away.
            .arg("-Dzookeeper.forceSync=no")
            .arg("-cp")
            .arg(format!("{}/*", software.jars.display()))
            .arg("org.apache.zookeeper.server.quorum.QuorumPeerMain")
            .arg(configuration);
        self.process.start(&mut command, port)
    }

    fn configuration(&self, port: u16) -> String {
        include_str!("assets/zoo.cfg")
            .replace("{folder}", &self.process.folder().display().to_string())
            .replace("{port}", &port.to_string())
    }

    /// Returns `standalone`, `leader` or `follower`. Fails while the server serves no client; it answers `ruok` with yes even then.
    pub(super) fn mode(&self) -> Result<String> {
        let said = ask(self.process.port()?, "srvr")?;
        mode(&said).with_context(|| format!("ZooKeeper says: {}", said.trim()))
    }
}

fn ask(port: u16, word: &str) -> Result<String> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(word.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

fn mode(said: &str) -> Option<String> {
    said.lines().find_map(|line| line.strip_prefix("Mode: ")).map(str::to_owned)
}

const PATIENCE: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_mode_of_who_serves() {
        let said = "Zookeeper version: 3.9.5\nConnections: 1\nMode: follower\nNode count: 5\n";
        assert_eq!(mode(said).unwrap(), "follower");
        assert_eq!(mode("This ZooKeeper instance is not currently serving requests\n"), None);
    }

    #[test]
    fn the_configuration_is_complete() {
        let text = Server::new("/cache/zookeeper".into()).configuration(2181);
        assert!(text.contains("dataDir=/cache/zookeeper/data\nclientPort=2181\n"));
        assert!(!text.contains('{') && text.ends_with('\n'), "{text}");
    }
}
