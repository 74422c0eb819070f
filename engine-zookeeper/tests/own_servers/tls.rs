//! A server that wants TLS.

use ylock_core::ErrorKind;
use ylock_core::url::EngineUrl;
use ylock_engine_zookeeper::{ZookeeperEngine, ZookeeperOptions};
use ylock_testkit::own_servers::{Certificates, free_port};

use super::client_with;
use super::own_server::OwnServer;

fn options(url: &str) -> ZookeeperOptions {
    ZookeeperOptions::from_url(&EngineUrl::parse(url).unwrap(), &ylock_core::Options::default()).unwrap()
}

#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn tls_and_a_login_are_told_by_the_url() {
    let (papers, stranger, port) = (Certificates::make(), Certificates::make(), free_port("127.0.0.1"));
    let more = format!(
        "secureClientPort={port}\nsecureClientPortAddress=127.0.0.1\n\
         serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n\
         ssl.keyStore.location={}\nssl.keyStore.type=PEM\nssl.trustStore.location={}\nssl.trustStore.type=PEM\n\
         ssl.clientAuth=none",
        papers.file("server.pem"),
        papers.file("ca.pem")
    );
    let _server = OwnServer::start_with(&more).await;
    let url = |ca: &str| {
        format!(
            "zookeeper://me:p%40ss@127.0.0.1:{port}/locks?connect_timeout=3s&tls=on&acl=creator&tls_ca={ca}"
        )
    };
    let ylock = client_with(options(&url(&papers.file("ca.pem")))).await;
    assert!(ylock.locks("users").write("alice").await.unwrap().is_valid());
    for (ca, kind) in
        [(stranger.file("ca.pem"), ErrorKind::Unavailable), ("/nowhere.pem".to_owned(), ErrorKind::Config)]
    {
        let error = ZookeeperEngine::connect(&options(&url(&ca))).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(!format!("{error} {error:?}").contains("p@ss"), "{error}");
    }
}
