//! ZooKeeper servers that belong to one test.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use ylock_core::url::Host;
use ylock_testkit::own_servers::{self, free_port};

use super::server::host;

/// Short, so that sessions end soon after their time.
const TICK: &str = "250";

/// One server, alone or of an ensemble.
pub(crate) struct OwnServer {
    address: String,
    folder: PathBuf,
    /// The command that starts it, again and again.
    program: Command,
    child: Child,
}

impl OwnServer {
    pub(crate) async fn start() -> Self {
        Self::start_with("").await
    }

    /// With more lines of configuration; `{folder}` stands for its folder.
    pub(crate) async fn start_with(more: &str) -> Self {
        let server = Self::launch("127.0.0.1", None, more, &[], &[]);
        server.until_it_serves().await;
        server
    }

    /// Starts a server that goes by this clock.
    #[cfg(target_os = "linux")]
    pub(crate) async fn start_by(clock: &own_servers::SetClock) -> Self {
        let server = Self::launch("127.0.0.1", None, "", &[], &clock.variables());
        server.until_it_serves().await;
        server
    }

    fn launch(
        ip: &str,
        number: Option<usize>,
        more: &str,
        java_options: &[&str],
        variables: &[(&str, PathBuf)],
    ) -> Self {
        let port = free_port(ip);
        let folder = std::env::temp_dir().join(format!("ylock-zookeeper-{}", ylock_core::Owner::new()));
        std::fs::create_dir_all(folder.join("data")).unwrap();
        if let Some(number) = number {
            std::fs::write(folder.join("data/myid"), number.to_string()).unwrap();
        }
        let mut config = format!("dataDir={}/data\n", folder.display());
        let more = more.replace("{folder}", &folder.display().to_string());
        write!(
            config,
            "clientPort={port}\nclientPortAddress={ip}\ntickTime={TICK}\nmaxSessionTimeout=600000\n"
        )
        .unwrap();
        write!(
            config,
            "admin.enableServer=false\n4lw.commands.whitelist=srvr,mntr\nmaxClientCnxns=0\n{more}\n"
        )
        .unwrap();
        std::fs::write(folder.join("zoo.cfg"), config).unwrap();
        let mut program = program(&folder, java_options);
        let child = spawn(program.envs(variables.iter().cloned()));
        Self { address: format!("{ip}:{port}"), folder, program, child }
    }

    pub(crate) fn host(&self) -> Host {
        host(&self.address)
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// On its old port, with what is on its disk.
    pub(crate) async fn start_again(&mut self) {
        self.child = spawn(&mut self.program);
        self.until_it_serves().await;
    }

    /// Stops its process, as a machine does that hangs.
    pub(crate) fn freeze(&self) {
        own_servers::signal(&self.child, "STOP");
    }

    pub(crate) fn thaw(&self) {
        own_servers::signal(&self.child, "CONT");
    }

    /// Returns what the server says of itself, if it answers.
    pub(crate) async fn describe(&self) -> Option<String> {
        self.ask("srvr").await
    }

    /// Returns one of the numbers that the server counts.
    pub(crate) async fn number(&self, name: &str) -> u64 {
        let text = self.ask("mntr").await.expect("the server answers");
        let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("a number of this name");
        line.trim().parse().expect("a number")
    }

    async fn ask(&self, word: &str) -> Option<String> {
        let asking = async {
            let mut stream = TcpStream::connect(&self.address).await.ok()?;
            stream.write_all(word.as_bytes()).await.ok()?;
            let mut text = String::new();
            stream.read_to_string(&mut text).await.ok()?;
            Some(text)
        };
        tokio::time::timeout(Duration::from_secs(2), asking).await.ok().flatten()
    }

    pub(crate) async fn until_it_serves(&self) {
        let serving = async {
            while !self.describe().await.is_some_and(|text| text.contains("Mode: ")) {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        ylock_testkit::within(Duration::from_secs(60), "the server serves", serving).await;
    }
}

impl Drop for OwnServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Three servers, on three addresses as on three machines.
pub(crate) struct OwnEnsemble(pub(crate) Vec<OwnServer>);

impl OwnEnsemble {
    pub(crate) async fn start(java_options: &[&str]) -> Self {
        let ip = |number: usize| format!("127.0.0.{number}");
        let mut peers = "initLimit=40\nsyncLimit=20\n".to_owned();
        for number in 1..=3 {
            let ip = ip(number);
            writeln!(peers, "server.{number}={ip}:{}:{}", free_port(&ip), free_port(&ip)).unwrap();
        }
        let launch = |number: usize| OwnServer::launch(&ip(number), Some(number), &peers, java_options, &[]);
        let ensemble = Self((1..=3).map(launch).collect());
        for server in &ensemble.0 {
            server.until_it_serves().await;
        }
        ensemble
    }

    pub(crate) fn hosts(&self) -> Vec<Host> {
        self.0.iter().map(OwnServer::host).collect()
    }

    /// Returns the number of the server that leads.
    pub(crate) async fn leader(&self) -> usize {
        for (number, server) in self.0.iter().enumerate() {
            if server.describe().await.is_some_and(|text| text.contains("Mode: leader")) {
                return number;
            }
        }
        panic!("no server leads");
    }
}

fn program(folder: &Path, java_options: &[&str]) -> Command {
    let variable = |name: &str| {
        std::env::var(name)
            .unwrap_or_else(|_| panic!("{name}: run `cargo xtask test zookeeper`, which sets it"))
    };
    let mut program = Command::new(variable("YLOCK_TEST_JAVA"));
    program
        // Without waiting for the disk, which stands still for seconds now and then: what a killed process has written stays written.
        .args(["-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dzookeeper.forceSync=no"])
        .args(java_options)
        .args(["-cp", &format!("{}/*", variable("YLOCK_TEST_ZOOKEEPER_JARS"))])
        .arg("org.apache.zookeeper.server.quorum.QuorumPeerMain")
        .arg(folder.join("zoo.cfg"))
        .stdout(std::fs::File::create(folder.join("log")).unwrap())
        .stderr(Stdio::null());
    program
}

fn spawn(program: &mut Command) -> Child {
    program.spawn().expect("java starts")
}
