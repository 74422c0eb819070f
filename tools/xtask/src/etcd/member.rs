//! Runs one member, alone or of a cluster.

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result, bail};

use crate::store::Process;

#[derive(Clone, Debug)]
pub(super) struct Member {
    process: Process,
}

impl Member {
    pub(super) fn new(folder: PathBuf) -> Self {
        let data = data_of(&folder);
        Self { process: Process::new(folder, data) }
    }

    pub(super) fn process(&self) -> &Process {
        &self.process
    }

    /// Starts the member without data. `peers` are the ports at which the members listen for each other, this one's first name in the cluster is `number`.
    pub(super) fn start(&self, program: &Path, port: u16, number: usize, peers: &[u16]) -> Result<()> {
        self.process.forget("data")?;
        let cluster: Vec<_> =
            peers.iter().enumerate().map(|(at, port)| format!("m{at}=http://127.0.0.1:{port}")).collect();
        let (own, peer) = (format!("http://127.0.0.1:{port}"), format!("http://127.0.0.1:{}", peers[number]));
        let mut command = Command::new(program);
        command
            .arg(format!("--name=m{number}"))
            .arg(data_of(self.process.folder()))
            .args([format!("--listen-client-urls={own}"), format!("--advertise-client-urls={own}")])
            .args([format!("--listen-peer-urls={peer}"), format!("--initial-advertise-peer-urls={peer}")])
            .arg(format!("--initial-cluster={}", cluster.join(",")))
            .args(["--initial-cluster-state=new", "--log-level=warn"])
            // A machine with two cores does not answer in time while it does everything else, and elections take the place of tests.
            .args(["--heartbeat-interval=200", "--election-timeout=2000"])
            // A disk that stands still for seconds, as those of shared machines do, would cost locks their leases, in tests of other things. What a
            // server has written outlives its process without this; no test takes the power away.
            .arg("--unsafe-no-fsync")
            .args(["--auto-compaction-mode=periodic", "--auto-compaction-retention=5m"]);
        self.process.start(&mut command, port)
    }

    /// Checks that the member serves, which it does only with a leader.
    pub(super) fn check(&self) -> Result<()> {
        let said = ask(self.process.port()?)?;
        if said.contains("\"health\":\"true\"") { Ok(()) } else { bail!("etcd says: {}", said.trim()) }
    }
}

fn data_of(folder: &Path) -> String {
    format!("--data-dir={}", folder.join("data").display())
}

fn ask(port: u16) -> Result<String> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(b"GET /health HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).context("etcd does not answer")?;
    Ok(answer)
}

const PATIENCE: Duration = Duration::from_secs(2);
