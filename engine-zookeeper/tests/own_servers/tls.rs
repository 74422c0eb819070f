//! A server that wants TLS.

use ylock_core::ErrorKind;
use ylock_core::url::EngineUrl;
use ylock_engine_zookeeper::options::ClientCertificate;
use ylock_engine_zookeeper::{ZookeeperEngine, ZookeeperOptions};
use ylock_testkit::own_servers::{Certificates, free_port};

use super::client_with;
use super::own_server::OwnServer;

fn options(url: &str) -> ZookeeperOptions {
    ZookeeperOptions::from_url(&EngineUrl::parse(url).unwrap(), &ylock_core::Options::default()).unwrap()
}

/// A server that speaks TLS at this port, and wants certificates of clients, or not.
async fn server(port: u16, papers: &Certificates, of_clients: &str) -> OwnServer {
    let more = format!(
        "secureClientPort={port}\nsecureClientPortAddress=127.0.0.1\n\
         serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n\
         ssl.keyStore.location={}\nssl.keyStore.type=PEM\nssl.trustStore.location={}\nssl.trustStore.type=PEM\n\
         ssl.clientAuth={of_clients}",
        papers.file("server.pem"),
        papers.file("ca.pem")
    );
    OwnServer::start_with(&more).await
}

#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn tls_and_a_login_are_told_by_the_url() {
    let (papers, stranger, port) = (Certificates::make(), Certificates::make(), free_port("127.0.0.1"));
    let _server = server(port, &papers, "none").await;
    let url = |ca: &str| {
        format!(
            "zookeeper://me:p%40ss@127.0.0.1:{port}/locks?connect_timeout=10s&tls=on&acl=creator&tls_ca={ca}"
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

#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn a_certificate_of_the_client_is_told_by_the_url() {
    let (papers, stranger, port) = (Certificates::make(), Certificates::make(), free_port("127.0.0.1"));
    let _server = server(port, &papers, "need").await;
    let ca = papers.file("ca.pem");
    let url = |more: &str| {
        format!("zookeeper://127.0.0.1:{port}/locks?connect_timeout=10s&tls=on&tls_ca={ca}{more}")
    };
    let with = |of_client: &Certificates| {
        let ClientCertificate { certificate, key } = of_client.of_client();
        format!("&tls_cert={}&tls_key={}", certificate.display(), key.display())
    };
    let ylock = client_with(options(&url(&with(&papers)))).await;
    assert!(ylock.locks("users").write("alice").await.unwrap().is_valid());
    for (url, kind) in [
        (url(""), ErrorKind::Unavailable),
        (url(&with(&stranger)), ErrorKind::Unavailable),
        (url("&tls_cert=/nowhere.pem&tls_key=/nowhere.pem"), ErrorKind::Config),
    ] {
        let error = ZookeeperEngine::connect(&options(&url)).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{url}: {error}");
    }
}
