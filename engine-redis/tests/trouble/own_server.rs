//! A Redis server that belongs to one test.

use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use ylock_engine_redis::RedisOptions;

/// What it keeps.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Disk {
    Nothing,
    /// Every write, before it is answered.
    AppendOnly,
}

pub(crate) struct OwnServer {
    port: u16,
    disk: Disk,
    folder: PathBuf,
    more: Vec<String>,
    child: Child,
}

impl OwnServer {
    pub(crate) async fn start(disk: Disk) -> Self {
        Self::start_with(disk, &[]).await
    }

    pub(crate) async fn start_with(disk: Disk, more: &[&str]) -> Self {
        let port = free_port();
        let folder = std::env::temp_dir().join(format!("ylock-redis-{}", ylock_core::Owner::new()));
        std::fs::create_dir_all(&folder).unwrap();
        let more: Vec<String> = more.iter().map(|&word| word.to_owned()).collect();
        let child = spawn(port, disk, &folder, &more);
        let server = Self { port, disk, folder, more, child };
        server.await_answer().await;
        server
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
        self.child = spawn(self.port, self.disk, &self.folder, &self.more);
        self.await_answer().await;
    }

    pub(crate) async fn command(&self, words: &[&str]) {
        self.try_command(words).await.unwrap();
    }

    async fn try_command(&self, words: &[&str]) -> redis::RedisResult<()> {
        let client = redis::Client::open(("127.0.0.1", self.port))?;
        let mut connection = client.get_multiplexed_async_connection().await?;
        let mut command = redis::cmd(words[0]);
        words[1..].iter().for_each(|word| {
            command.arg(word);
        });
        command.exec_async(&mut connection).await
    }

    async fn await_answer(&self) {
        let answering = async {
            while self.try_command(&["PING"]).await.is_err() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), answering).await.expect("the server answers");
    }
}

pub(crate) fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

fn spawn(port: u16, disk: Disk, folder: &PathBuf, more: &[String]) -> Child {
    let append_only = if disk == Disk::AppendOnly { "yes" } else { "no" };
    Command::new("redis-server")
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""])
        .args(["--appendonly", append_only, "--appendfsync", "always"])
        .arg("--dir")
        .arg(folder)
        .args(more)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("redis-server is installed: `cargo xtask up redis` sees to that")
}

impl Drop for OwnServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
