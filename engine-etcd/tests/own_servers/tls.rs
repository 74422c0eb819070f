//! A server that speaks TLS.

use ylock_core::url::EngineUrl;
use ylock_core::{ErrorKind, Ylock};
use ylock_engine_etcd::{EtcdEngine, EtcdOptions};
use ylock_testkit::own_servers::{Certificates, free_port};

use super::own_cluster::Cluster;

fn options(url: &str) -> EtcdOptions {
    EtcdOptions::from_url(&EngineUrl::parse(url).unwrap(), &ylock_core::Options::default()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs etcd: run `cargo xtask test`"]
async fn only_the_authority_that_is_named_vouches_for_a_server() {
    let (papers, stranger, port) = (Certificates::make(), Certificates::make(), free_port("127.0.0.1"));
    let _cluster = Cluster::start_with_tls(port, &papers).await;
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
