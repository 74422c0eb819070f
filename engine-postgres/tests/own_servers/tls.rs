//! A server that wants TLS and a password.

use ylock_core::ErrorKind;
use ylock_core::url::EngineUrl;
use ylock_engine_postgres::{PostgresEngine, PostgresOptions};
use ylock_testkit::own_servers::{Certificates, until};

use super::own_server::OwnServer;
use super::{acquire, client_with, engine_with, joins, told, unlock, within};

fn options(url: &str) -> PostgresOptions {
    let url = EngineUrl::parse(url).unwrap();
    PostgresOptions::from_url(&url, &ylock_core::Options::default()).unwrap()
}

/// A server that lets the role `app` in with TLS and a password only.
async fn server(certificates: &Certificates) -> OwnServer {
    let server = OwnServer::start().await;
    drop(engine_with(&server.options()).await);
    server.execute("create role app login password 'p@ss'; grant usage on schema ylock to app").await;
    server.keep("server.crt", &std::fs::read_to_string(certificates.file("certificate.pem")).unwrap());
    server.keep("server.key", &std::fs::read_to_string(certificates.file("key.pem")).unwrap());
    server.keep(
        "pg_hba.conf",
        "hostssl all app 127.0.0.1/32 scram-sha-256\nhost all app 127.0.0.1/32 reject\nhost all all 127.0.0.1/32 trust\n",
    );
    server.execute("alter system set ssl = on").await;
    server.execute("select pg_reload_conf()").await;
    until("it speaks TLS", async || {
        server.client().await.query_one("select current_setting('ssl') = 'on'", &[]).await.unwrap().get(0)
    })
    .await;
    server
}

#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn tls_and_a_password_are_told_by_the_url() {
    let (certificates, stranger) = (Certificates::make(), Certificates::make());
    let server = server(&certificates).await;
    let ca = certificates.file("ca.pem");
    let url = |password: &str, tls: &str| {
        let port = server.port();
        format!("postgres://app:{password}@127.0.0.1:{port}/postgres?lease=1m&connect_timeout=5s{tls}")
    };
    let with = |ca: &str| format!("&tls=on&tls_ca={ca}");
    let right = url("p%40ss", &with(&ca));
    let (one, two) = (client_with(options(&right)).await, client_with(options(&right)).await);
    // Also the connection that listens.
    let guard = acquire(&one).await;
    let waiting = joins(&two, &one, 0).await;
    until("it can be told", async || told(&server).await == 1).await;
    unlock(guard).await;
    unlock(within("the next one gets in", waiting).await.unwrap()).await;
    for (url, kinds) in [
        (url("wrong", &with(&ca)), [ErrorKind::Config; 2]),
        (url("p%40ss", ""), [ErrorKind::Config; 2]),
        (url("p%40ss", &with(&stranger.file("ca.pem"))), [ErrorKind::Config, ErrorKind::Unavailable]),
        (url("p%40ss", &with("/nowhere.pem")), [ErrorKind::Config; 2]),
    ] {
        let error = PostgresEngine::connect(&options(&url)).await.unwrap_err();
        assert!(kinds.contains(&error.kind()), "{url}: {error:#}");
        assert!(!format!("{error} {error:?}").contains("p@ss"), "{error}");
    }
}
