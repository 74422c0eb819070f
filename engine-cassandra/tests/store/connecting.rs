use std::net::TcpListener;
use std::time::Duration;

use ylock_core::url::EngineUrl;
use ylock_core::{ErrorKind, Options};
use ylock_engine_cassandra::algorithm::store::State;
use ylock_engine_cassandra::options::{CassandraOptions, Consistency};

use super::cluster::*;
use super::expiry::within;

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn a_url_connects() {
    let addresses = variable("YLOCK_TEST_CASSANDRA");
    let url = format!("cassandra://{addresses}/{KEYSPACE}?lease=6s&schema=create&replication=3");
    let options = CassandraOptions::from_url(&EngineUrl::parse(&url).unwrap(), &Options::default()).unwrap();
    let bench = Bench::with(options).await;
    bench.write(&write(stamp(), row(State::Held))).await;
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn nobody_listens_there() {
    let options = CassandraOptions::new(KEYSPACE).with_host("127.0.0.1", 1).with_host("127.0.0.2", 2);
    let error = within("refused", connect(&options)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let text = error.to_string();
    assert!(
        text.contains("127.0.0.1:1") && text.contains("127.0.0.2:2") && text.contains("no server listens"),
        "{text}"
    );
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn a_name_that_means_nothing() {
    let options = CassandraOptions::new(KEYSPACE).with_host("no-such-host.invalid", 9042);
    let error = within("not resolved", connect(&options)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("no-such-host.invalid"), "{error}");
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn somebody_listens_and_says_nothing() {
    let (_silent, port) = silent();
    let options = CassandraOptions::new(KEYSPACE).with_host("127.0.0.1", port);
    let limit = Duration::from_millis(700);
    let error = within("silence", connect(&options.with_connect_timeout(limit))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains(&format!("127.0.0.1:{port}")), "{error}");
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn a_silent_host_does_not_keep_a_client_from_the_others() {
    let (_silent, port) = silent();
    // The driver begins with either; both ways must lead to the cluster.
    for _ in 0..4 {
        let options = options().with_host("127.0.0.1", port).with_connect_timeout(Duration::from_secs(10));
        within("connected", connect(&options)).await.unwrap();
    }
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn a_server_that_is_no_cassandra() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let other = async {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::io::AsyncWriteExt::write_all(&mut stream, b"HTTP/1.1 400 Bad Request\r\n\r\n").await.ok();
        }
    };
    let options = CassandraOptions::new(KEYSPACE).with_host("127.0.0.1", port);
    let error = tokio::select! {
        outcome = within("refused", connect(&options)) => outcome.unwrap_err(),
        () = other => unreachable!("it listens for ever"),
    };
    assert!(error.to_string().contains(&format!("127.0.0.1:{port}")), "{error}");
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn a_local_quorum_of_a_data_centre_works() {
    let options = options().with_consistency(Consistency::LocalQuorum).with_datacenter("datacenter1");
    let bench = Bench::with(options).await;
    let write = write(stamp(), row(State::Held));
    bench.write(&write).await;
    assert_eq!(bench.read().await.rows[0].row, Some(write.row));
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn a_data_centre_without_replicas_is_named() {
    for consistency in [Consistency::LocalQuorum, Consistency::Quorum] {
        let options = options().with_consistency(consistency).with_datacenter("mars");
        match connect(&options).await {
            Ok(table) => assert_eq!(consistency, Consistency::Quorum, "{table:?}"),
            Err(error) => {
                assert_eq!((error.kind(), consistency), (ErrorKind::Config, Consistency::LocalQuorum));
                assert!(error.to_string().contains("\"mars\""), "{error}");
            }
        }
    }
}

/// A port on which connections are accepted and nothing is ever answered.
fn silent() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}
