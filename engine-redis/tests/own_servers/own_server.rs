//! A Redis server that belongs to one test.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use ylock_engine_redis::RedisOptions;
use ylock_testkit::own_servers::{self, free_port};

/// The data that the server keeps on disk.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Disk {
    Nothing,
    /// Every write, before it is answered.
    AppendOnly,
}

pub(crate) struct OwnServer {
    port: u16,
    folder: PathBuf,
    /// The command that starts it, again and again.
    program: Command,
    child: Child,
}

impl OwnServer {
    pub(crate) async fn start(disk: Disk) -> Self {
        Self::start_with(disk, &[]).await
    }

    pub(crate) async fn start_with(disk: Disk, more: &[&str]) -> Self {
        Self::start_in(folder(), disk, more, &[]).await
    }

    #[cfg(target_os = "linux")]
    pub(crate) async fn start_by(clock: &own_servers::SetClock) -> Self {
        Self::start_in(folder(), Disk::Nothing, &[], &clock.variables()).await
    }

    async fn start_in(folder: PathBuf, disk: Disk, more: &[&str], variables: &[(&str, PathBuf)]) -> Self {
        let port = free_port("127.0.0.1");
        let mut program = program(port, disk, &folder, more);
        program.envs(variables.iter().cloned());
        let child = spawn(&mut program);
        let mut server = Self { port, folder, program, child };
        server.await_answer().await;
        server
    }

    /// A Sentinel of the service `locks`, whose master listens on this port.
    pub(crate) async fn start_sentinel(master: &str) -> Self {
        let folder = folder();
        let file = folder.join("sentinel.conf");
        let lines = format!(
            "sentinel monitor locks 127.0.0.1 {master} 2\n\
             sentinel down-after-milliseconds locks 1000\n\
             sentinel failover-timeout locks 5000\n"
        );
        std::fs::write(&file, lines).unwrap();
        let file = file.display().to_string();
        Self::start_in(folder, Disk::Nothing, &[&file, "--sentinel"], &[]).await
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn options(&self) -> RedisOptions {
        RedisOptions::new("127.0.0.1", self.port)
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// On its old port, with what is on its disk.
    pub(crate) async fn start_again(&mut self) {
        self.child = spawn(&mut self.program);
        self.await_answer().await;
    }

    pub(crate) async fn command(&self, words: &[&str]) {
        self.try_command(words).await.unwrap();
    }

    async fn try_command(&self, words: &[&str]) -> redis::RedisResult<()> {
        self.ask(words).await
    }

    /// Returns the server's answer to a command.
    pub(crate) async fn ask<T: redis::FromRedisValue>(&self, words: &[&str]) -> redis::RedisResult<T> {
        let client = redis::Client::open(("127.0.0.1", self.port))?;
        // A busy machine may take longer than the driver waits by itself.
        let bound = Some(Duration::from_secs(10));
        let patient =
            redis::AsyncConnectionConfig::new().set_connection_timeout(bound).set_response_timeout(bound);
        let mut connection = client.get_multiplexed_async_connection_with_config(&patient).await?;
        let mut command = redis::cmd(words[0]);
        words[1..].iter().for_each(|word| {
            command.arg(word);
        });
        command.query_async(&mut connection).await
    }

    /// Returns how often the server was asked to do this.
    pub(crate) async fn calls(&self, command: &str) -> u64 {
        let info: String = self.ask(&["INFO", "commandstats"]).await.unwrap();
        let line = format!("cmdstat_{command}:calls=");
        let calls = info.lines().find_map(|words| words.strip_prefix(&line)?.split(',').next()?.parse().ok());
        calls.unwrap_or(0)
    }

    /// `STOP` or `CONT`.
    pub(crate) fn signal(&self, name: &str) {
        own_servers::signal(&self.child, name);
    }

    async fn await_answer(&mut self) {
        let answering = async {
            while self.try_command(&["PING"]).await.is_err() {
                let ended = self.child.try_wait().expect("a child of this process");
                assert_eq!(ended, None, "the server on port {} has ended", self.port);
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        own_servers::within("the server answers", answering).await;
    }
}

fn folder() -> PathBuf {
    let folder = std::env::temp_dir().join(format!("ylock-redis-{}", ylock_core::Owner::new()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn program(port: u16, disk: Disk, folder: &Path, more: &[&str]) -> Command {
    let append_only = if disk == Disk::AppendOnly { "yes" } else { "no" };
    let (file, more) = match more {
        // Redis wants the name of a file before everything else.
        [file, more @ ..] if !file.starts_with('-') => (Some(file), more),
        more => (None, more),
    };
    let mut program = Command::new("redis-server");
    program
        .args(file)
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""])
        .args(["--appendonly", append_only, "--appendfsync", "always"])
        .arg("--dir")
        .arg(folder)
        .args(more)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    program
}

fn spawn(program: &mut Command) -> Child {
    program.spawn().expect("redis-server is installed: `cargo xtask up redis` sees to that")
}

impl Drop for OwnServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
