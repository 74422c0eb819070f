//! What is stored in another version than that of the clients here.

use ylock_core::{Error, ErrorKind};
use ylock_engine_redis::{RedisEngine, RedisOptions};

use super::own_cluster::OwnCluster;
use super::own_server::{Disk, OwnServer};
use super::{LOCKS, LONG, client, client_with, within};

const VERSION: &str = "ylock:{version}";

/// The version that a server says.
async fn said(server: &OwnServer) -> Option<String> {
    server.ask(&["HGET", VERSION, "version"]).await.unwrap()
}

async fn say(server: &OwnServer, version: &str) {
    server.command(&["HSET", VERSION, "version", version]).await;
}

fn is_refusal(error: &Error) {
    assert_eq!(error.kind(), ErrorKind::Config, "{error:#}");
    for part in ["prefix ylock ", "version 2", "version 1", "side by side", "ylock:*"] {
        assert!(error.to_string().contains(part), "{part}: {error:#}");
    }
}

async fn refused(options: &RedisOptions) {
    is_refusal(&RedisEngine::connect(options).await.expect_err("another version"));
}

/// And the version stays as it is, whichever clients come and go.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn clients_of_another_version_are_refused_by_name() {
    let server = OwnServer::start(Disk::Nothing).await;
    drop(client(&server, LONG).await);
    assert_eq!(said(&server).await.as_deref(), Some("1"));
    say(&server, "2").await;
    refused(&server.options()).await;
    assert_eq!(said(&server).await.as_deref(), Some("2"));
    // Of another prefix nothing is said.
    drop(client_with(server.options().with_prefix("shop")).await);
    say(&server, "1").await;
    let ylock = client(&server, LONG).await;
    let _held = ylock.locks("users").write("alice").await.unwrap();
    let mut listing = ylock.list();
    assert_eq!(listing.next().await.unwrap().expect("the lock").key.name(), "alice");
    assert!(listing.next().await.unwrap().is_none(), "and nothing else");
    ylock.close().await;
    assert_eq!(said(&server).await.as_deref(), Some("1"));
    let lives: i64 = server.ask(&["PTTL", VERSION]).await.unwrap();
    assert_eq!(lives, -1, "it does not end");
}

/// Such as one that was started before the operator went to another version.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_client_that_lives_is_refused_with_its_next_connection() {
    let server = OwnServer::start(Disk::Nothing).await;
    let ylock = client(&server, LONG).await;
    let mut names = (0..).map(|number: u32| number.to_string());
    // A name for each: what one was refused is still being given back.
    let mut tried = async || ylock.locks("users").write(names.next().unwrap()).now().await;
    assert!(tried().await.unwrap().is_some());
    say(&server, "2").await;
    server.command(&["CLIENT", "KILL", "TYPE", "normal"]).await;
    let refused = within("it is refused", async {
        loop {
            match tried().await {
                Err(error) if error.kind() == ErrorKind::Config => return error,
                _ => {}
            }
        }
    });
    is_refusal(&refused.await);
    say(&server, "1").await;
    within("it goes on", async { while !tried().await.is_ok_and(|guard| guard.is_some()) {} }).await;
}

/// What says the version is written like a lock: also where nothing else is.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn the_first_client_of_a_server_whose_memory_is_full_says_its_version() {
    let server = OwnServer::start(Disk::Nothing).await;
    server.command(&["CONFIG", "SET", "maxmemory", "1"]).await;
    drop(client(&server, LONG).await);
    assert_eq!(said(&server).await.as_deref(), Some("1"));
}

/// It is asked without being written: one that has a version need not take writes for a client to look at its locks.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_server_without_its_replicas_is_asked_all_the_same() {
    let server = OwnServer::start(Disk::Nothing).await;
    drop(client(&server, LONG).await);
    let wants =
        async |replicas: &str| server.command(&["CONFIG", "SET", "min-replicas-to-write", replicas]).await;
    wants("1").await;
    RedisEngine::connect(&server.options()).await.unwrap();
    wants("0").await;
    server.command(&["DEL", VERSION]).await;
    wants("1").await;
    let error = RedisEngine::connect(&server.options()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "nothing is known of other clients: {error:#}");
}

#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_cluster_has_one_version_wherever_it_is() {
    let cluster = OwnCluster::start(0).await;
    let ylock = client_with(cluster.options().with_lease(LONG)).await;
    drop(ylock.locks("users").write("alice").await.unwrap());
    let (from, to) = {
        let mut keeper = None;
        for (number, server) in cluster.servers.iter().enumerate() {
            let keys: Vec<String> = server.ask(&["KEYS", VERSION]).await.unwrap();
            if !keys.is_empty() {
                assert_eq!(keeper.replace(number), None, "one server says it");
            }
        }
        let from = keeper.expect("a server says it");
        (from, (from + 1) % cluster.servers.len())
    };
    say(&cluster.servers[from], "2").await;
    refused(&cluster.options()).await;
    // On its way to another server it is asked for there, and not made a second time.
    cluster.begin_move(VERSION, from, to).await;
    refused(&cluster.options()).await;
    cluster.end_move(VERSION, from, to).await;
    refused(&cluster.options()).await;
    say(&cluster.servers[to], "1").await;
    let ylock = client_with(cluster.options().with_lease(LONG)).await;
    drop(ylock.locks("users").write("alice").await.unwrap());
    for (number, server) in cluster.servers.iter().enumerate() {
        let keys: Vec<String> = server.ask(&["KEYS", "ylock:*"]).await.unwrap();
        let locks: Vec<String> = server.ask(&["KEYS", LOCKS]).await.unwrap();
        assert_eq!(keys.len() - locks.len(), usize::from(number == to), "{keys:?}");
    }
}

/// One server says the version for all: a client that has found another one there is refused at each of them.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_client_of_a_cluster_that_has_found_another_version_is_refused_at_every_server() {
    let cluster = OwnCluster::start(0).await;
    let ylock = client_with(cluster.options().with_lease(LONG)).await;
    let mut names = (0..).map(|number: u32| number.to_string());
    let mut tried = async || ylock.locks("users").write(names.next().unwrap()).now().await;
    let mut says = None;
    for server in &cluster.servers {
        let keys: Vec<String> = server.ask(&["KEYS", VERSION]).await.unwrap();
        says = says.or((!keys.is_empty()).then_some(server));
    }
    let says = says.expect("a server says it");
    say(says, "2").await;
    says.command(&["CLIENT", "KILL", "TYPE", "normal"]).await;
    let found = async { while !tried().await.is_err_and(|error| error.kind() == ErrorKind::Config) {} };
    within("it finds the other version", found).await;
    // Their slots are on all servers.
    for _ in 0..30 {
        let error = within("it is answered", tried()).await.expect_err("no lock is given");
        assert!(matches!(error.kind(), ErrorKind::Config | ErrorKind::Unavailable), "{error:#}");
    }
    say(says, "1").await;
    within("it goes on", async { while !tried().await.is_ok_and(|guard| guard.is_some()) {} }).await;
}
