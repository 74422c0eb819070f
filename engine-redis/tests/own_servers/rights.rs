//! What becomes of a client whose user may not write: its callers are told at once, and it keeps no program that ends.

use std::sync::Arc;
use std::time::Duration;

use ylock_core::url::Secret;
use ylock_core::{ErrorKind, Options, Ylock};
use ylock_engine_redis::RedisEngine;
use ylock_testkit::own_servers::within;

use super::own_server::{Disk, OwnServer};

/// So long that no test outlasts it.
const HOUR: Duration = Duration::from_secs(3_600);

/// Returns a client that logs in as this user, which may do all.
async fn client_of(server: &OwnServer, user: &str) -> (Arc<RedisEngine>, Ylock) {
    server.command(&["ACL", "SETUSER", user, "on", ">secret", "~*", "&*", "+@all"]).await;
    let options = server.options().with_lease(HOUR).with_login(user, Secret::new("secret"));
    let engine = Arc::new(RedisEngine::connect(&options).await.expect("the server answers"));
    let lease = Options::default().with_lease(HOUR);
    (Arc::clone(&engine), Ylock::from_arc(engine).with_options(lease))
}

#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_user_that_may_not_call_scripts_is_told_so_and_leaves_nothing_to_undo() {
    let server = OwnServer::start(Disk::Nothing).await;
    for (user, right) in [("stranger", "-@scripting"), ("elsewhere", "resetkeys")] {
        let (engine, ylock) = client_of(&server, user).await;
        server.command(&["ACL", "SETUSER", user, right]).await;
        let (before, lock) = (engine.requests(), ylock.lock("users", "alice"));
        let tried = within("a try is refused", lock.write().now()).await.err();
        let waited = within("a waiter is refused", lock.write()).await.err();
        for error in [tried, waited] {
            let error = error.expect("it may not");
            assert_eq!(error.kind(), ErrorKind::Config, "{error}");
            assert!(format!("{error:#}").contains("no permissions"), "{error:#}");
        }
        within("it is closed", ylock.close()).await;
        assert_eq!(engine.requests() - before, 2, "{user}: nothing was to be undone");
    }
}

/// The script ends with its first write. A server of version 7.0 does not say which that was.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_user_that_may_call_scripts_and_not_write_does_not_keep_its_program() {
    let server = OwnServer::start(Disk::Nothing).await;
    let (_, ylock) = client_of(&server, "reader").await;
    server.command(&["ACL", "SETUSER", "reader", "-@write"]).await;
    let lock = ylock.lock("users", "alice");
    let error = within("a try is refused", lock.write().now()).await.expect_err("it may not");
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    within("it is closed", ylock.close()).await;
}

#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_user_that_may_not_write_any_more_does_not_keep_its_program() {
    let server = OwnServer::start(Disk::Nothing).await;
    let (_, ylock) = client_of(&server, "shop").await;
    let guard = within("it gets in", ylock.lock("users", "alice").write()).await.unwrap();
    server.command(&["ACL", "SETUSER", "shop", "-@write"]).await;
    within("it is closed", ylock.close()).await;
    assert!(!guard.is_valid());
    // Another one waits for the lease.
    let (_, other) = client_of(&server, "other").await;
    assert!(other.lock("users", "alice").write().now().await.unwrap().is_none());
}
