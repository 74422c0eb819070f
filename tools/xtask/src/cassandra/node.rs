//! One Cassandra node: its folder, its configuration, its process.

use std::{
    fs,
    net::{Ipv4Addr, SocketAddrV4, TcpListener},
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

/// The clock that servers of tests go by. The tests use this module too.
#[path = "../../../testkit/src/own_servers/clock_files.rs"]
mod clock_files;

use self::clock_files::ClockFiles;
use super::tls;
use crate::{
    daemon::{Daemon, ProcessState},
    jars::Software,
    places::Places,
    store::Process,
};

/// In the minutes that tests take, compiling a node's code well costs more than it brings: a third of all that the nodes compute.
const FOR_TESTS: &str = "-XX:TieredStopAtLevel=1\n";

#[derive(Clone, Debug)]
pub(crate) struct Node {
    number: u8,
    process: Process,
    is_for_tests: bool,
}

impl Node {
    pub(crate) fn new(places: &Places, number: u8) -> Self {
        let folder = places.root().join(format!("nodes/node{number}"));
        let mark = format!("-Dcassandra.storagedir={}", folder.display());
        Self { number, process: Process::new(folder, mark), is_for_tests: places.is_for_tests() }
    }

    pub(crate) fn process(&self) -> &Process {
        &self.process
    }

    pub(crate) fn number(&self) -> u8 {
        self.number
    }

    pub(crate) fn address(&self) -> Ipv4Addr {
        Ipv4Addr::new(127, 0, 0, self.number)
    }

    pub(crate) fn cql_address(&self) -> SocketAddrV4 {
        SocketAddrV4::new(self.address(), CQL_PORT)
    }

    /// Returns whether this is the node, in a cluster of its own, that requires TLS and a password.
    pub(crate) fn wants_login(&self) -> bool {
        self.number == LOGIN
    }

    pub(crate) fn ca(&self) -> PathBuf {
        self.conf().join("ca.pem")
    }

    pub(crate) fn daemon(&self) -> Daemon {
        self.process.daemon()
    }

    /// Returns the port at which the tools of operators find the node; on the machine's own address, whatever the node's address is.
    pub(crate) fn jmx_port(&self) -> u16 {
        JMX_PORT + u16::from(self.number)
    }

    pub(crate) fn conf(&self) -> PathBuf {
        self.process.folder().join("conf")
    }

    pub(crate) fn state(&self) -> ProcessState {
        self.process.state()
    }

    pub(crate) fn is_prepared(&self) -> bool {
        self.conf().exists()
    }

    /// Empties the node's folder and writes its configuration.
    pub(crate) fn prepare(&self) -> Result<()> {
        if self.process.folder().exists() {
            fs::remove_dir_all(self.process.folder())?;
        }
        let write = |name: &str, text: &str| self.process.write(&format!("conf/{name}"), text).map(drop);
        write("cassandra.yaml", &self.yaml())?;
        write("logback.xml", include_str!("assets/logback.xml"))?;
        let java = if self.is_for_tests { FOR_TESTS } else { "" };
        write("jvm.options", &(include_str!("assets/jvm.options").to_owned() + java))?;
        if self.wants_login() {
            let made = tls::make(self.address())?;
            write("ca.pem", &made.ca)?;
            write("node.pem", &made.node)?;
        }
        Ok(())
    }

    fn yaml(&self) -> String {
        let mut yaml = include_str!("assets/cassandra.yaml").to_owned();
        if self.wants_login() {
            yaml += include_str!("assets/login.yaml");
        } else {
            yaml += &format!("initial_token: {}\n", TOKENS[usize::from(self.number) - 1]);
        }
        // A node that is not a seed gives up when the seed is slower than itself. So each of the three is a seed.
        let seeds = if self.wants_login() { "127.0.0.4" } else { "127.0.0.1,127.0.0.2,127.0.0.3" };
        yaml.replace("{cluster}", if self.wants_login() { "ylock login" } else { "ylock" })
            .replace("{seeds}", seeds)
            .replace("{address}", &self.address().to_string())
            .replace("{cql_port}", &CQL_PORT.to_string())
            .replace("{storage_port}", &STORAGE_PORT.to_string())
            .replace("{dir}", &self.process.folder().display().to_string())
    }

    /// Sets by how many microseconds the node's clock is ahead of the machine's.
    pub(crate) fn set_clock(&self, ahead: i64) -> Result<()> {
        self.clock().set(ahead).with_context(|| format!("node {} has no clock that can be set", self.number))
    }

    fn clock(&self) -> ClockFiles {
        ClockFiles::in_folder(self.process.folder().join("clock"))
    }

    /// Starts the node on the data that it has, with a clock that is right.
    pub(crate) fn start(&self, software: &Software) -> Result<()> {
        let (conf, folder, clock) = (self.conf(), self.process.folder().display(), self.clock());
        clock.make().context("cannot make the clock of a node, by the C compiler `cc`")?;
        let mut command = Command::new(&software.java.program);
        command.envs(clock.variables());
        command.arg(format!("@{}", conf.join("jvm.options").display()));
        if software.java.version > 17 {
            command.arg("-Djava.security.manager=allow");
        }
        command
            .arg(format!("-javaagent:{}", jamm(&software.jars)?.display()))
            .arg(format!("-Dcassandra.config=file://{}", conf.join("cassandra.yaml").display()))
            .arg(format!("-Dlogback.configurationFile={}", conf.join("logback.xml").display()))
            .arg(format!("-Dcassandra.storagedir={folder}"))
            .arg(format!("-Dcassandra.logdir={folder}"))
            .arg(format!("-Dcassandra.jmx.local.port={}", self.jmx_port()))
            .arg("-cp")
            .arg(format!("{}:{}/*", conf.display(), software.jars.display()))
            .arg("org.apache.cassandra.service.CassandraDaemon");
        self.daemon().start(&mut command, &self.process.log())
    }

    /// Checks that no other process has the node's ports.
    pub(crate) fn check_ports(&self) -> Result<()> {
        self.daemon().await_gone()?;
        let jmx = (Ipv4Addr::LOCALHOST, self.jmx_port());
        for (address, port) in [(self.address(), CQL_PORT), (self.address(), STORAGE_PORT), jmx] {
            if let Err(error) = TcpListener::bind((address, port)) {
                bail!(
                    "{address}:{port} is taken by a process that xtask did not start ({error}); end this \
                     process (`ss -ltnp` names it), or point YLOCK_TEST_CASSANDRA at a cluster of your own"
                );
            }
        }
        Ok(())
    }
}

/// Returns the jar of the agent that measures objects; its version changes with Cassandra's.
fn jamm(jars: &Path) -> Result<PathBuf> {
    let files = fs::read_dir(jars)?.flatten().map(|entry| entry.path());
    let is_jamm =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("jamm-"));
    files.into_iter().find(is_jamm).context("there is no jamm jar among Cassandra's jars")
}

/// The nodes that are one cluster; the fourth is alone.
pub(crate) const RING: [u8; 3] = [1, 2, 3];
pub(crate) const LOGIN: u8 = 4;

/// The tokens of the three nodes: each has an equal part of the ring.
const TOKENS: [i64; 3] = [i64::MIN, -3_074_457_345_618_258_603, 3_074_457_345_618_258_602];

const CQL_PORT: u16 = 9042;
const JMX_PORT: u16 = 7190;
const STORAGE_PORT: u16 = 7000;
