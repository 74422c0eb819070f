//! A server that wants TLS and a password.

use ylock_core::ErrorKind;
use ylock_core::url::EngineUrl;
use ylock_engine_redis::options::ClientCertificate;
use ylock_engine_redis::{RedisEngine, RedisOptions};
use ylock_testkit::own_servers::{Certificates, free_port};

use super::own_server::{Disk, OwnServer};
use super::{client_with, until, within};

fn options(url: &str) -> RedisOptions {
    let url = EngineUrl::parse(url).unwrap();
    RedisOptions::from_url(&url, &ylock_core::Options::default()).unwrap()
}

/// A server that speaks TLS on the second port, with these certificates.
async fn server(certificates: &Certificates, more: &[&str]) -> (OwnServer, u16) {
    let port = free_port("127.0.0.1");
    let words = ["--tls-port", &port.to_string(), "--tls-auth-clients", "no"].map(str::to_owned);
    let files = [
        ("--tls-cert-file", "certificate.pem"),
        ("--tls-key-file", "key.pem"),
        ("--tls-ca-cert-file", "ca.pem"),
    ];
    let files = files.iter().flat_map(|(option, file)| [(*option).to_owned(), certificates.file(file)]);
    let words: Vec<String> = words.into_iter().chain(files).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).chain(more.iter().copied()).collect();
    (OwnServer::start_with(Disk::Nothing, &words).await, port)
}

#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn tls_and_a_password_are_told_by_the_url() {
    let (certificates, stranger) = (Certificates::make(), Certificates::make());
    let (server, port) = server(&certificates, &[]).await;
    server.command(&["CONFIG", "SET", "requirepass", "p@ss"]).await;

    let ca = certificates.file("ca.pem");
    let url = |password: &str, ca: &str| {
        format!("rediss://:{password}@127.0.0.1:{port}/0?connect_timeout=3s&tls_ca={ca}")
    };
    let ylock = client_with(options(&url("p%40ss", &ca))).await;
    assert!(ylock.locks("users").write("alice").await.unwrap().is_valid());
    for (url, kind) in [
        (url("wrong", &ca), ErrorKind::Config),
        (url("p%40ss", &stranger.file("ca.pem")), ErrorKind::Unavailable),
        (url("p%40ss", "/nowhere.pem"), ErrorKind::Config),
    ] {
        let error = RedisEngine::connect(&options(&url)).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{url}: {error}");
        assert!(!format!("{error} {error:?}").contains("p@ss"), "{error}");
    }
}

#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_certificate_of_the_client_is_told_by_the_url() {
    let (certificates, stranger) = (Certificates::make(), Certificates::make());
    let (_server, port) = server(&certificates, &["--tls-auth-clients", "yes"]).await;
    let ca = certificates.file("ca.pem");
    let url = |more: &str| format!("rediss://127.0.0.1:{port}/0?connect_timeout=3s&tls_ca={ca}{more}");
    let with = |of_client: &Certificates| {
        let ClientCertificate { certificate, key } = of_client.of_client();
        format!("&tls_cert={}&tls_key={}", certificate.display(), key.display())
    };
    let ylock = client_with(options(&url(&with(&certificates)))).await;
    assert!(ylock.locks("users").write("alice").await.unwrap().is_valid());
    for (url, kind) in [
        (url(""), ErrorKind::Unavailable),
        (url(&with(&stranger)), ErrorKind::Unavailable),
        (url("&tls_cert=/nowhere.pem&tls_key=/nowhere.pem"), ErrorKind::Config),
    ] {
        let error = RedisEngine::connect(&options(&url)).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{url}: {error}");
    }
}

/// A cluster of one server is enough to see that all connections to it are made with TLS, also the one for messages.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn tls_in_a_cluster() {
    let (certificates, bus) = (Certificates::make(), free_port("127.0.0.1").to_string());
    let words = ["--cluster-enabled", "yes", "--cluster-port", &bus, "--tls-cluster", "yes"];
    let (server, port) = server(&certificates, &words).await;
    server.command(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]).await;
    until("the cluster works", async || {
        let info: String = server.ask(&["CLUSTER", "INFO"]).await.unwrap();
        info.contains("cluster_state:ok")
    })
    .await;
    let url = format!("rediss+cluster://127.0.0.1:{port}?lease=1m&tls_ca={}", certificates.file("ca.pem"));
    let (one, two) = (client_with(options(&url)).await, client_with(options(&url)).await);
    let guard = one.locks("users").write("alice").await.unwrap();
    let waiting = tokio::spawn({
        let locks = two.locks("users");
        async move { locks.write("alice").await.unwrap() }
    });
    until("the waiter listens", async || {
        let channels: Vec<String> = server.ask(&["PUBSUB", "SHARDCHANNELS"]).await.unwrap();
        channels.len() == 1
    })
    .await;
    let listeners: String = server.ask(&["CLIENT", "LIST", "TYPE", "pubsub"]).await.unwrap();
    assert!(listeners.contains(&format!("laddr=127.0.0.1:{port} ")), "{listeners}");
    assert!(within("given back", guard.unlock()).await.unwrap().is_released());
    assert!(within("the next one gets in", waiting).await.unwrap().unlock().await.unwrap().is_released());
}
