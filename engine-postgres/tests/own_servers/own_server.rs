//! A PostgreSQL server that belongs to one test.

use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::poll_fn;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio_postgres::{AsyncMessage, Client, Config, NoTls};
use ylock_engine_postgres::PostgresOptions;
use ylock_testkit::own_servers::{self, free_port};

/// The user that tests log in as.
pub(crate) const USER: &str = "ylock";
/// The database that they use.
pub(crate) const DATABASE: &str = "postgres";
/// The settings of a server that writes all that it was asked into its [log](OwnServer::log).
pub(crate) const LOGGED: [&str; 3] =
    ["logging_collector=on", "log_filename=all.log", "log_min_duration_statement=0"];

pub(crate) struct OwnServer {
    port: u16,
    folder: PathBuf,
    /// The command that starts it, again and again.
    program: Command,
    child: Child,
}

impl OwnServer {
    pub(crate) async fn start() -> Self {
        Self::start_with(&[], &[]).await
    }

    /// A server with these settings and environment variables.
    pub(crate) async fn start_with(settings: &[&str], variables: &[(&str, PathBuf)]) -> Self {
        let folder = folder();
        run(command("initdb")
            .args(["--no-sync", "--auth=trust", "--locale=C", "--username", USER, "--pgdata"])
            .arg(&folder));
        Self::run_in(folder, settings, variables).await
    }

    /// A server whose log is on this disk, and in pieces of a megabyte.
    #[cfg(target_os = "linux")]
    pub(crate) async fn start_on(disk: &own_servers::SmallDisk) -> Self {
        let (folder, log) = (folder(), disk.path().join("log"));
        make(&log);
        run(command("initdb")
            .args(["--no-sync", "--auth=trust", "--locale=C", "--username", USER, "--wal-segsize=1"])
            .arg("--waldir")
            .arg(&log)
            .arg("--pgdata")
            .arg(&folder));
        Self::run_in(folder, &["min_wal_size=2MB", "max_wal_size=8MB"], &[]).await
    }

    /// Writes into the log until the server cannot any more.
    #[cfg(target_os = "linux")]
    pub(crate) async fn fill_log(&self) {
        let Ok(client) = self.try_client().await else { return };
        let write = "select pg_logical_emit_message(false, 'filler', repeat('x', 300000))";
        own_servers::within("the log is full", async { while client.query(write, &[]).await.is_ok() {} })
            .await;
    }

    #[cfg(target_os = "linux")]
    pub(crate) async fn start_by(clock: &own_servers::SetClock) -> Self {
        Self::start_with(&[], &clock.variables()).await
    }

    /// A standby that follows this server under a name.
    pub(crate) async fn standby(&self, name: &str) -> Self {
        let folder = folder();
        let source = format!("host=127.0.0.1 port={} user={USER} application_name={name}", self.port);
        run(command("pg_basebackup")
            .args([
                "--no-sync",
                "--checkpoint=fast",
                "--write-recovery-conf",
                "--dbname",
                &source,
                "--pgdata",
            ])
            .arg(&folder));
        let standby = Self::run_in(folder, &[], &[]).await;
        let is_streaming = format!(
            "select exists (select from pg_stat_replication where application_name = '{name}' and state = 'streaming')"
        );
        own_servers::until("the standby follows", async || {
            self.client().await.query_one(&is_streaming, &[]).await.is_ok_and(|row| row.get(0))
        })
        .await;
        standby
    }

    /// Makes a subscription to all changes, which is no standby. It ends with the server.
    pub(crate) async fn subscription(&self) {
        self.execute("create publication everything for all tables").await;
        self.execute("select pg_create_logical_replication_slot('subscription', 'pgoutput')").await;
        let source = format!("host=127.0.0.1 port={} user={USER} dbname=postgres", self.port);
        drop(spawn(
            command("pg_recvlogical")
                .args(["--slot=subscription", "--start", "--no-loop", "--file=/dev/null"])
                .args([
                    "--option=proto_version=1",
                    "--option=publication_names=everything",
                    "--dbname",
                    &source,
                ]),
        ));
        let is_active = "select active from pg_replication_slots";
        own_servers::until("it reads", async || {
            self.client().await.query_one(is_active, &[]).await.is_ok_and(|row| row.get(0))
        })
        .await;
    }

    /// Lets a program keep the log, as for backups, from a slot with this name. It is no standby, and ends with the server.
    pub(crate) async fn keeps_log(&self, slot: &str) {
        let kept = folder();
        let source = format!("host=127.0.0.1 port={} user={USER} dbname=postgres", self.port);
        self.execute(&format!("select pg_create_physical_replication_slot('{slot}')")).await;
        drop(spawn(
            command("pg_receivewal")
                .args(["--no-loop", "--no-sync", "--slot", slot, "--dbname", &source, "--directory"])
                .arg(&kept),
        ));
        let is_active = "select bool_and(active) from pg_replication_slots";
        own_servers::until("it reads", async || {
            self.client().await.query_one(is_active, &[]).await.is_ok_and(|row| row.get(0))
        })
        .await;
        // It goes on with the file that it has open, and ends without the folder if it has opened none yet.
        let has_file = || std::fs::read_dir(&kept).is_ok_and(|mut files| files.next().is_some());
        own_servers::until("it writes", async || has_file()).await;
        let _ = std::fs::remove_dir_all(kept);
    }

    async fn run_in(folder: PathBuf, settings: &[&str], variables: &[(&str, PathBuf)]) -> Self {
        let port = free_port("127.0.0.1");
        let mut program = command("postgres");
        program.arg("-D").arg(&folder);
        // What a server has written outlives its processes also without `fsync`, and no test takes the power away.
        let common =
            ["listen_addresses=127.0.0.1", "unix_socket_directories=", "max_connections=200", "fsync=off"];
        for setting in [&format!("port={port}")[..]].iter().chain(&common).chain(settings) {
            program.arg("-c").arg(setting);
        }
        program.envs(variables.iter().cloned());
        let child = spawn(&mut program);
        let server = Self { port, folder, program, child };
        server.await_answer().await;
        server
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn options(&self) -> PostgresOptions {
        self.options_for(USER)
    }

    pub(crate) fn options_for(&self, role: &str) -> PostgresOptions {
        PostgresOptions::new("127.0.0.1", self.port, DATABASE)
            .with_login(role, ylock_core::url::Secret::new(""))
    }

    /// Writes a file into the folder of the server.
    #[cfg(feature = "tls")]
    pub(crate) fn keep(&self, name: &str, text: &str) {
        use std::os::unix::fs::PermissionsExt;
        let file = self.folder.join(name);
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        if let Some((uid, gid)) = other_user() {
            std::os::unix::fs::chown(&file, Some(uid), Some(gid)).unwrap();
        }
    }

    /// Returns what the server has written into its log, if it collects one in `all.log`.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.join("log").join("all.log")).unwrap_or_default()
    }

    /// A connection without ylock.
    pub(crate) async fn client(&self) -> Client {
        self.try_client().await.expect("the server answers")
    }

    async fn try_client(&self) -> Result<Client, tokio_postgres::Error> {
        let (client, connection) = self.config().connect(NoTls).await?;
        tokio::spawn(connection);
        Ok(client)
    }

    fn config(&self) -> Config {
        let mut config = Config::new();
        config.host("127.0.0.1").port(self.port).user(USER).dbname(DATABASE).application_name("test");
        config
    }

    /// Listens to a channel for as long as the client is there. Returns what is said on it.
    pub(crate) async fn listen(&self, channel: &str) -> (Client, UnboundedReceiver<String>) {
        let (client, mut connection) = self.config().connect(NoTls).await.expect("the server answers");
        let (sender, receiver) = unbounded_channel();
        tokio::spawn(async move {
            let mut messages = poll_fn(|context| connection.poll_message(context));
            while let Some(Ok(message)) = messages.next().await {
                if let AsyncMessage::Notification(said) = message {
                    // The test may have ended.
                    let _ = sender.send(said.payload().to_owned());
                }
            }
        });
        client.batch_execute(&format!("listen {channel}")).await.expect("it listens");
        (client, receiver)
    }

    pub(crate) async fn execute(&self, statements: &str) {
        self.client().await.batch_execute(statements).await.expect("executed");
    }

    /// Ends connections of clients for locks: those that listen, or the others. Returns how many.
    pub(crate) async fn end_connections(&self, listening: bool) -> i64 {
        // Only the one that listens has a session's advisory lock.
        let statement = "select count(pg_terminate_backend(a.pid)) from pg_stat_activity a where a.application_name = 'ylock'
            and $1 = exists (select from pg_locks l where l.pid = a.pid and l.locktype = 'advisory')";
        self.client().await.query_one(statement, &[&listening]).await.expect("ended").get(0)
    }

    /// `kill -9`, of all its processes.
    pub(crate) fn kill(&mut self) {
        let children = self.children();
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        for child in children {
            send("KILL", child);
        }
    }

    /// On its old port, with what is on its disk, unless its processes have begun again by themselves. More than once where it ends at once: a process that
    /// was just being made when the server was killed still has its memory for a moment.
    pub(crate) async fn start_again(&mut self) {
        let answers = async {
            while self.try_client().await.is_err() {
                if self.child.try_wait().unwrap().is_some() {
                    self.child = spawn(&mut self.program);
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        own_servers::within("the server answers", answers).await;
    }

    /// Lets all its processes stand still, or go on.
    pub(crate) fn stop(&self) {
        own_servers::signal(&self.child, "STOP");
        self.children().into_iter().for_each(|child| send("STOP", child));
    }

    pub(crate) fn go_on(&self) {
        self.children().into_iter().for_each(|child| send("CONT", child));
        own_servers::signal(&self.child, "CONT");
    }

    /// Makes a standby the server that takes writes.
    pub(crate) async fn promote(&self) {
        let promoted: bool =
            self.client().await.query_one("select pg_promote()", &[]).await.expect("promoted").get(0);
        assert!(promoted);
    }

    fn children(&self) -> Vec<u32> {
        let pid = self.child.id();
        let all = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        all.split_whitespace().map(|child| child.parse().expect("a pid")).collect()
    }

    async fn await_answer(&self) {
        let answering = async {
            while self.try_client().await.is_err() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        own_servers::within("the server answers", answering).await;
    }
}

/// Returns the command of one of the programs, as a user that it does not refuse to run as.
fn command(program: &str) -> Command {
    let programs = super::variable("YLOCK_TEST_POSTGRES_PROGRAMS");
    let mut command = Command::new(Path::new(&programs).join(program));
    if let Some((uid, gid)) = other_user() {
        command.uid(uid).gid(gid);
    }
    command.current_dir("/");
    command
}

/// Returns the user of the package, if this is root.
fn other_user() -> Option<(u32, u32)> {
    let status = std::fs::read_to_string("/proc/self/status").expect("a status");
    let is_root = status.lines().any(|line| line.starts_with("Uid:\t0\t0\t"));
    let users = std::fs::read_to_string("/etc/passwd").expect("users");
    let line = users.lines().find_map(|line| line.strip_prefix("postgres:")).filter(|_| is_root)?;
    let ids: Vec<u32> = line.split(':').skip(1).take(2).map(|id| id.parse().expect("an id")).collect();
    Some((ids[0], ids[1]))
}

fn run(command: &mut Command) {
    let output = command.output().expect("it is installed: `cargo xtask up postgres` sees to that");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn spawn(program: &mut Command) -> Child {
    program.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("started")
}

fn send(signal: &str, pid: u32) {
    // It may have ended.
    let _ =
        Command::new("kill").arg(format!("-{signal}")).arg(pid.to_string()).stderr(Stdio::null()).status();
}

fn folder() -> PathBuf {
    let folder = std::env::temp_dir().join(format!("ylock-postgres-{}", ylock_core::Owner::new()));
    make(&folder);
    folder
}

fn make(folder: &Path) {
    // The server refuses a folder that others may read.
    std::fs::DirBuilder::new().mode(0o700).create(folder).unwrap();
    if let Some((uid, gid)) = other_user() {
        std::os::unix::fs::chown(folder, Some(uid), Some(gid)).unwrap();
    }
}

impl Drop for OwnServer {
    fn drop(&mut self) {
        self.kill();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
