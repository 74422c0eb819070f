//! Programs that share a server.

use ylock_core::Ylock;

use super::client_with;
use super::own_server::{Disk, OwnServer};

#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn clients_exclude_each_other_under_one_prefix_only() {
    let server = OwnServer::start(Disk::Nothing).await;
    let client = async |prefix: &str| client_with(server.options().with_prefix(prefix)).await;
    let (one, same, other) = (client("shop").await, client("shop").await, client("shop:1").await);
    let tried = async |ylock: &Ylock| ylock.locks("users").write("alice").now().await.unwrap();
    let held = tried(&one).await.expect("it is free");
    assert!(tried(&same).await.is_none());
    assert!(tried(&other).await.is_some());
    drop(held);
    let keys: Vec<String> = server.ask(&["KEYS", "shop:{*}:*"]).await.unwrap();
    assert!(keys.iter().all(|key| key.contains(":users:alice")), "{keys:?}");
}
