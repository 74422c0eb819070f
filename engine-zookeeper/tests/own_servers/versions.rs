//! What is stored in another version than that of the clients here.

use ylock_core::{Error, ErrorKind};
use ylock_engine_zookeeper::ZookeeperEngine;

use super::own_server::OwnServer;
use super::{client, options, server, within};

/// The node of the floor, which also says the version.
const NODE: &str = "/ylock/token-floor";

fn is_refusal(error: &Error) {
    assert_eq!(error.kind(), ErrorKind::Config, "{error:#}");
    for part in ["below the node /ylock ", "version 2", "version 1", "side by side", NODE] {
        assert!(error.to_string().contains(part), "{part}: {error:#}");
    }
}

/// And the version stays as it is, whichever clients come and go.
#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn clients_of_another_version_are_refused_by_name() {
    let server = OwnServer::start().await;
    drop(client(vec![server.host()]).await);
    let raw = server::raw(&[server.host()]).await;
    raw.set_data(NODE, b"0 version=2", None).await.unwrap();
    is_refusal(&ZookeeperEngine::connect(&options(vec![server.host()])).await.unwrap_err());
    assert_eq!(raw.get_data(NODE).await.unwrap().0, b"0 version=2");
    raw.set_data(NODE, b"0", None).await.unwrap();
    let ylock = client(vec![server.host()]).await;
    let _held = within("it is free", ylock.locks("users").write("alice")).await.unwrap();
    let mut listing = ylock.list();
    assert_eq!(listing.next().await.unwrap().expect("the lock").key.name(), "alice");
    assert!(listing.next().await.unwrap().is_none(), "and nothing else");
    ylock.close().await;
    assert_eq!(raw.get_data(NODE).await.unwrap().0, b"0");
}

/// Such as one that was started before the operator went to another version: each session watches the node.
#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn a_client_that_lives_is_refused_with_its_next_lock() {
    let server = OwnServer::start().await;
    let ylock = client(vec![server.host()]).await;
    let held = within("it is free", ylock.locks("users").write("alice")).await.unwrap();
    let raw = server::raw(&[server.host()]).await;
    raw.set_data(NODE, b"0 version=2", None).await.unwrap();
    let tried = async |name: &str| within("it is answered", ylock.locks("users").write(name).now()).await;
    let refused = within("the watch has told it", async {
        for name in 0.. {
            if let Err(error) = tried(&name.to_string()).await {
                return error;
            }
        }
        unreachable!("there are names enough")
    });
    is_refusal(&refused.await);
    assert!(held.is_valid(), "it came before");
    raw.set_data(NODE, b"0", None).await.unwrap();
    assert!(tried("bob").await.unwrap().is_some(), "it goes on");
}
