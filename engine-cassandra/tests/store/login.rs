use std::path::Path;

use ylock_core::ErrorKind;
use ylock_core::url::Secret;
use ylock_engine_cassandra::algorithm::store::State;
use ylock_engine_cassandra::options::Tls;

use super::cluster::*;

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn login_over_tls() {
    let bench = Bench::with(login_options()).await;
    let write = write(stamp(), row(State::Held));
    bench.write(&write).await;
    assert_eq!(bench.read().await.rows[0].row, Some(write.row));
    assert!(!format!("{:?}", bench.table).contains("cassandra"));
    assert!(format!("{:?}", login_options()).contains("password: ***"));
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn a_wrong_password_names_the_user_and_hides_the_password() {
    let options = login_options().with_login("cassandra", Secret::new("hunter2"));
    let error = connect(&options).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("login failed for user \"cassandra\""), "{error}");
    assert!(!format!("{error} {error:?} {options:?}").contains("hunter2"));
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn no_login_where_one_is_needed() {
    let error = connect(&anonymous_options()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("demands a login"), "{error}");
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn plain_text_to_a_node_that_demands_tls() {
    let error = connect(&login_options().with_tls(Tls::Off)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("tls=on"), "{error}");
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn tls_to_a_node_that_has_none() {
    let error = connect(&options().with_tls(Tls::PlatformRoots)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    assert!(error.to_string().contains("no agreement on TLS"), "{error}");
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn an_authority_that_did_not_sign_the_certificate() {
    let other = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/store/other_ca.pem");
    for tls in [Tls::Authority(other), Tls::PlatformRoots] {
        let error = connect(&login_options().with_tls(tls)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.to_string().contains("is not trusted"), "{error}");
    }
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn an_unreadable_authority_is_named() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    for file in [here.join("no-such-file.pem"), here.join("Cargo.toml"), here.to_owned()] {
        let error = connect(&login_options().with_tls(Tls::Authority(file.clone()))).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.to_string().contains(&format!("tls_ca={}", file.display())), "{error}");
    }
}
