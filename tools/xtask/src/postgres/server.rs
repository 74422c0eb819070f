//! Runs one PostgreSQL server alone.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use super::program::{self, RunsAs};
use crate::{
    places::Places,
    store::{Process, Store, free_ports},
    tail,
};

/// The user that the tests log in as, without a password.
const LOGIN: &str = "ylock";

#[derive(Debug)]
pub(super) struct Server {
    process: Process,
    data: PathBuf,
}

impl Server {
    pub(super) fn new(places: &Places) -> Self {
        let folder = places.root().join("postgres");
        let data = data(&folder);
        let process = Process::new(folder, data.display().to_string());
        Self { process, data }
    }

    fn port(&self) -> Result<u16> {
        self.process.port()
    }

    /// Makes the files of a server without data.
    fn init(&self, user: Option<RunsAs>) -> Result<()> {
        if self.data.exists() {
            fs::remove_dir_all(&self.data)
                .with_context(|| format!("cannot remove {}", self.data.display()))?;
        }
        fs::create_dir_all(&self.data)?;
        let mut command = Command::new(program::folder()?.join("initdb"));
        command.args([
            "--no-sync",
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C",
            "--username",
            LOGIN,
            "--pgdata",
        ]);
        command.arg(&self.data);
        if let Some(user) = user {
            user.give(&self.data)?;
            user.apply(&mut command);
        }
        let output = command.output().context("cannot run initdb")?;
        if !output.status.success() {
            bail!("initdb failed:\n{}", tail::of(&output.stderr));
        }
        // A disk that stands still for seconds, as those of shared machines do, would cost locks their leases, in tests of other things. In the file, where the
        // benchmark can change it.
        let file = self.data.join("postgresql.conf");
        let mut settings = fs::read_to_string(&file)?;
        settings.push_str("\nfsync = off\n");
        fs::write(&file, settings).with_context(|| format!("cannot write {}", file.display()))
    }
}

/// Returns the folder of the data: that of root's cache is closed to the user that the server runs as.
fn data(folder: &Path) -> PathBuf {
    if !rustix::process::geteuid().is_root() {
        return folder.join("data");
    }
    // One for each cache.
    let bytes = folder.as_os_str().as_encoded_bytes();
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    std::env::temp_dir().join(format!("ylock-postgres-{hash:016x}"))
}

impl Store for Server {
    fn name(&self) -> &'static str {
        "PostgreSQL"
    }

    fn variable(&self) -> &'static str {
        "YLOCK_TEST_POSTGRES"
    }

    fn processes(&self) -> Vec<Process> {
        vec![self.process.clone()]
    }

    fn start(&self) -> Result<()> {
        let user = RunsAs::find()?;
        self.init(user)?;
        let [port] = free_ports();
        let mut command = Command::new(program::folder()?.join("postgres"));
        command.arg("-D").arg(&self.data);
        for setting in [
            format!("port={port}"),
            "listen_addresses=127.0.0.1".to_owned(),
            "unix_socket_directories=".to_owned(),
            "max_connections=500".to_owned(),
        ] {
            command.arg("-c").arg(setting);
        }
        if let Some(user) = user {
            user.apply(&mut command);
        }
        // The log is opened by this process, and may be in a folder that is closed to the server.
        fs::create_dir_all(self.process.folder())?;
        self.process.start(&mut command, port)
    }

    fn check(&self) -> Result<()> {
        let mut command = Command::new(program::folder()?.join("pg_isready"));
        command.args(["--quiet", "--host", "127.0.0.1", "--port", &self.port()?.to_string()]);
        if command.status()?.success() { Ok(()) } else { bail!("PostgreSQL takes no connections") }
    }

    fn address(&self) -> Result<String> {
        Ok(format!("{LOGIN}@127.0.0.1:{}/postgres", self.port()?))
    }
}
