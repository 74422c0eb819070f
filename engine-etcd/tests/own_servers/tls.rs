//! A server that speaks TLS.

use ylock_core::url::EngineUrl;
use ylock_core::{ErrorKind, Ylock};
use ylock_engine_etcd::options::ClientCertificate;
use ylock_engine_etcd::{EtcdEngine, EtcdOptions};
use ylock_testkit::own_servers::{Certificates, free_port};

use super::own_cluster::Cluster;

fn options(url: &str) -> EtcdOptions {
    EtcdOptions::from_url(&EngineUrl::parse(url).unwrap(), &ylock_core::Options::default()).unwrap()
}

/// A member that also listens with TLS, at this port.
async fn member(port: u16, papers: &Certificates, more: &[String]) -> Cluster {
    let with_tls = [
        format!("--listen-client-urls={{own}},https://127.0.0.1:{port}"),
        format!("--cert-file={}", papers.file("certificate.pem")),
        format!("--key-file={}", papers.file("key.pem")),
    ];
    Cluster::start_with(&[&with_tls, more].concat()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs etcd: run `cargo xtask test`"]
async fn only_the_authority_that_is_named_vouches_for_a_server() {
    let (papers, stranger, port) = (Certificates::make(), Certificates::make(), free_port("127.0.0.1"));
    let _cluster = member(port, &papers, &[]).await;
    let url = |ca: &str| format!("etcd://127.0.0.1:{port}/locks?connect_timeout=3s&tls=on&tls_ca={ca}");
    let ylock = Ylock::new(EtcdEngine::connect(&options(&url(&papers.file("ca.pem")))).await.unwrap());
    assert!(ylock.locks("users").write("alice").await.unwrap().is_valid());
    for (ca, kind) in
        [(stranger.file("ca.pem"), ErrorKind::Unavailable), ("/nowhere.pem".to_owned(), ErrorKind::Config)]
    {
        let error = EtcdEngine::connect(&options(&url(&ca))).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error:#}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs etcd: run `cargo xtask test`"]
async fn a_certificate_of_the_client_is_told_by_the_url() {
    let (papers, stranger, port) = (Certificates::make(), Certificates::make(), free_port("127.0.0.1"));
    let wants = ["--client-cert-auth".to_owned(), format!("--trusted-ca-file={}", papers.file("ca.pem"))];
    let _cluster = member(port, &papers, &wants).await;
    let (ca, own) = (papers.file("ca.pem"), papers.of_client());
    let url =
        |more: &str| format!("etcd://127.0.0.1:{port}/locks?connect_timeout=3s&tls=on&tls_ca={ca}{more}");
    let with = |certificate: &ClientCertificate| {
        format!("&tls_cert={}&tls_key={}", certificate.certificate.display(), certificate.key.display())
    };
    let engine = EtcdEngine::connect(&options(&url(&with(&own)))).await.unwrap();
    assert!(Ylock::new(engine).locks("users").write("alice").await.unwrap().is_valid());
    let nowhere = ClientCertificate { certificate: "/nowhere.pem".into(), ..own.clone() };
    let of_another_key = ClientCertificate { key: stranger.of_client().key, ..own };
    for (url, says) in [
        (url(""), "name one that it trusts with tls_cert and tls_key"),
        (url(&with(&stranger.of_client())), "name one that it trusts with tls_cert and tls_key"),
        (url(&with(&nowhere)), "tls_cert=/nowhere.pem cannot be read"),
        (url(&with(&of_another_key)), "cannot be used with its tls_key"),
    ] {
        let error = EtcdEngine::connect(&options(&url)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config, "{url}: {error:#}");
        assert!(error.to_string().contains(says), "{url}: {error:#}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs etcd: run `cargo xtask test`"]
async fn a_server_without_tls_is_told() {
    let (papers, cluster) = (Certificates::make(), Cluster::start(1).await);
    let member = cluster.hosts()[0].address(2379);
    let url = format!("etcd://{member}/locks?tls=on&tls_ca={}", papers.file("ca.pem"));
    let error = EtcdEngine::connect(&options(&url)).await.unwrap_err();
    // A server that stops just then looks the same.
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:#}");
    assert!(error.to_string().contains("leave out tls=on"), "{error:#}");
}
