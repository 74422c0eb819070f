//! Sessions by a connector of the program's.

use std::time::Duration;

use ylock_core::ErrorKind;
use ylock_core::url::Secret;
use ylock_engine_zookeeper::options::{Acl, Tls};
use ylock_engine_zookeeper::{ZookeeperEngine, driver_api};
use ylock_testkit::own_servers::until;
use zookeeper_client::Client;

use super::own_server::OwnServer;
use super::{LEASE, client_with, options};

#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn sessions_log_in_as_the_connector_does() {
    let server = OwnServer::start().await;
    let connector = Client::connector().with_auth("digest", b"me:secret").with_readonly(true);
    let by_connector = driver_api::options(connector, [server.host()]).with_lease(LEASE);
    let holder = client_with(by_connector.with_acl(Acl::Creator)).await;
    let guard = holder.locks("users").write("alice").await.unwrap();

    let same = options(vec![server.host()]).with_acl(Acl::Creator);
    let same = client_with(same.with_login("me", Secret::new("secret"))).await;
    assert!(same.locks("users").write("alice").now().await.unwrap().is_none());

    for _ in 0..3 {
        let refused = ZookeeperEngine::connect(&options(vec![server.host()])).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Config, "{refused}");
    }
    // A session that was made and is of no use is closed, not kept until its runtime ends.
    until("two sessions are left", async || server.number("zk_global_sessions").await == 2).await;
    assert!(guard.unlock().await.unwrap().is_released());
}

/// Nothing listens there.
const NOWHERE: &str = "127.0.0.1:1";

#[tokio::test]
async fn a_client_that_gets_no_session_is_told_to_look_at_the_tls_of_its_connector() {
    let options = driver_api::options(Client::connector(), [super::server::host(NOWHERE)])
        .with_connect_timeout(Duration::from_millis(200));
    let encrypted = options.clone().with_tls(Tls::PlatformRoots);
    for (options, hint) in [(options, "with_tls(Tls::PlatformRoots)"), (encrypted, "must have it too")] {
        let error = ZookeeperEngine::connect(&options).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.to_string().contains(hint), "{error}");
    }
}

#[test]
fn the_authorities_may_be_those_of_the_connector() {
    let host = super::server::host(NOWHERE);
    let options = driver_api::options(Client::connector(), [host]).with_tls(Tls::PlatformRoots);
    options.check().unwrap();
    assert!(format!("{options:?}").contains("Some(Connector)"), "no login is shown: {options:?}");
}
