//! Servers that want TLS, and with it a password or a certificate.

use ylock_core::ErrorKind;
use ylock_core::url::EngineUrl;
use ylock_engine_postgres::options::ClientCertificate;
use ylock_engine_postgres::{PostgresEngine, PostgresOptions};
use ylock_testkit::own_servers::{Certificates, until};

use super::own_server::OwnServer;
use super::{acquire, client_with, engine_with, joins, told, unlock, within};

fn options(url: &str) -> PostgresOptions {
    let url = EngineUrl::parse(url).unwrap();
    PostgresOptions::from_url(&url, &ylock_core::Options::default()).unwrap()
}

/// A server that lets the roles `app` and `other` in as the rules say, and the tests without TLS.
async fn server(certificates: &Certificates, rules: &str) -> OwnServer {
    let server = OwnServer::start().await;
    drop(engine_with(&server.options()).await);
    for role in ["app", "other"] {
        server
            .execute(&format!(
                "create role {role} login password 'p@ss'; grant usage on schema ylock to {role}"
            ))
            .await;
    }
    server.keep("server.crt", &std::fs::read_to_string(certificates.file("certificate.pem")).unwrap());
    server.keep("server.key", &std::fs::read_to_string(certificates.file("key.pem")).unwrap());
    server.keep("ca.crt", &std::fs::read_to_string(certificates.file("ca.pem")).unwrap());
    let others = "host all app,other 127.0.0.1/32 reject\nhost all all 127.0.0.1/32 trust\n";
    server.keep("pg_hba.conf", &format!("{rules}\n{others}"));
    server.execute("alter system set ssl_ca_file = 'ca.crt'").await;
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
    let server = server(&certificates, "hostssl all app 127.0.0.1/32 scram-sha-256").await;
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

#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn a_certificate_of_the_client_is_told_by_the_url() {
    let (certificates, stranger) = (Certificates::make(), Certificates::make());
    let rules = "hostssl all app 127.0.0.1/32 cert\nhostssl all other 127.0.0.1/32 scram-sha-256 clientcert=verify-full";
    let server = server(&certificates, rules).await;
    let (ca, own) = (certificates.file("ca.pem"), certificates.of_client());
    let url = |login: &str, more: &str| {
        let port = server.port();
        format!(
            "postgres://{login}@127.0.0.1:{port}/postgres?lease=1m&connect_timeout=5s&tls=on&tls_ca={ca}{more}"
        )
    };
    let with = |certificate: &ClientCertificate| {
        format!("&tls_cert={}&tls_key={}", certificate.certificate.display(), certificate.key.display())
    };
    let right = url("app", &with(&own));
    let (one, two) = (client_with(options(&right)).await, client_with(options(&right)).await);
    // Also the connection that listens.
    let guard = acquire(&one).await;
    let waiting = joins(&two, &one, 0).await;
    until("it can be told", async || told(&server).await == 1).await;
    unlock(guard).await;
    unlock(within("the next one gets in", waiting).await.unwrap()).await;

    let nowhere = ClientCertificate { certificate: "/nowhere.pem".into(), ..own.clone() };
    let of_another_key = ClientCertificate { key: stranger.of_client().key, ..own.clone() };
    let no_key = ClientCertificate { key: own.certificate.clone(), ..own.clone() };
    for (url, says) in [
        (url("app", ""), "requires a valid client certificate"),
        // One that the server trusts, of another client.
        (url("other:p%40ss", &with(&own)), "the login was refused"),
        (url("app", &with(&stranger.of_client())), "name one that it trusts with tls_cert and tls_key"),
        (url("app", &with(&nowhere)), "tls_cert=/nowhere.pem cannot be read"),
        (url("app", &with(&of_another_key)), "cannot be used with its tls_key"),
        (url("app", &with(&no_key)), "has no private key in PEM"),
    ] {
        let error = PostgresEngine::connect(&options(&url)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config, "{url}: {error:#}");
        assert!(error.to_string().contains(says), "{url}: {error:#}");
    }
}
