//! PgBouncer in transaction mode before the server.

use std::process::{Child, Command, Stdio};

use ylock_engine_postgres::PostgresOptions;
use ylock_testkit::note_skip;
use ylock_testkit::own_servers::{free_port, until};

use super::own_server::{LOGGED, OwnServer, USER};
use super::{LONG, client_with, one_holds_and_another_waits, told, unlock, within};

struct Pooler {
    port: u16,
    child: Child,
    folder: std::path::PathBuf,
}

impl Pooler {
    /// Starts a pooler, if there is the program.
    async fn start(server: &OwnServer) -> Option<Self> {
        Self::start_with(server, "").await
    }

    /// Starts one with these settings too.
    async fn start_with(server: &OwnServer, more: &str) -> Option<Self> {
        let program = std::env::var_os("YLOCK_TEST_PGBOUNCER").filter(|program| !program.is_empty())?;
        let port = free_port("127.0.0.1");
        let folder = std::env::temp_dir().join(format!("ylock-pgbouncer-{}", ylock_core::Owner::new()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("pgbouncer.ini");
        let text = format!(
            "[databases]\npostgres = host=127.0.0.1 port={}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nauth_type = any\n\
             pool_mode = transaction\ndefault_pool_size = 4\nunix_socket_dir =\nadmin_users = {USER}\n{more}\n",
            server.port()
        );
        let text = text.replace("postgres = host", &format!("postgres = user={USER} host"));
        std::fs::write(&file, text).unwrap();
        let mut command = Command::new(program);
        // It refuses to run as root.
        command.arg("-q").arg("-u").arg("postgres").arg(&file);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("pgbouncer starts");
        let pooler = Self { port, child, folder };
        until("the pooler answers", async || {
            tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok()
        })
        .await;
        Some(pooler)
    }

    fn options(&self) -> PostgresOptions {
        let options = PostgresOptions::new("127.0.0.1", self.port, "postgres");
        options.with_login(USER, ylock_core::url::Secret::new("")).with_lease(LONG)
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Returns how many of three releases were sent under the name of a prepared statement, and how many as text, by what the server has written into its log.
async fn prepared_names(server: &OwnServer, options: &PostgresOptions) -> (usize, usize) {
    let (before, client) = (server.log().len(), client_with(options.clone()).await);
    for _ in 0..3 {
        unlock(client.locks("users").write("alice").await.unwrap()).await;
    }
    let calls = || {
        let log = server.log().split_off(before);
        let count =
            |how: &str| log.lines().filter(|line| line.contains(how) && line.contains("release(")).count();
        (count("execute s"), count("execute <unnamed>"))
    };
    until("the log has all", async || calls().0 + calls().1 == 3).await;
    calls()
}

#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn statements_are_prepared_where_the_session_is_the_connections_own() {
    let server = OwnServer::start_with(&LOGGED, &[]).await;
    assert_eq!(prepared_names(&server, &server.options()).await, (3, 0));
    // The second one takes what a login says for the session, and does not pass it on.
    let poolers = [
        Pooler::start(&server).await,
        Pooler::start_with(&server, "ignore_startup_parameters = options").await,
    ];
    let [Some(refuses), Some(ignores)] = poolers else {
        return note_skip(
            "postgres",
            "statements_are_prepared_where_the_session_is_the_connections_own",
            "there is no pgbouncer",
        );
    };
    for pooler in [refuses, ignores] {
        assert_eq!(prepared_names(&server, &pooler.options()).await, (0, 3));
    }
}

#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn clients_ask_through_a_pooler_and_are_told_at_another_address() {
    let server = OwnServer::start().await;
    let Some(pooler) = Pooler::start(&server).await else {
        return note_skip(
            "postgres",
            "clients_ask_through_a_pooler_and_are_told_at_another_address",
            "there is no pgbouncer",
        );
    };
    let direct = pooler.options().with_listen("127.0.0.1", server.port());
    for (options, is_told) in [(pooler.options(), 0), (direct, 1)] {
        let (one, two) = (client_with(options.clone()).await, client_with(options).await);
        for round in 0..5 {
            let (guard, waiting) = one_holds_and_another_waits(&one, &two).await;
            if is_told == 1 {
                until("it can be told", async || told(&server).await == 1).await;
            } else if round == 0 {
                until("it finds out that it is not told", async || told(&server).await == 0).await;
            }
            unlock(guard).await;
            unlock(within("the next one gets in", waiting).await.unwrap()).await;
        }
    }
}
