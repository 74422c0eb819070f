//! Locks on the server of a client that the program has.

use redis::Client;
use ylock_core::url::Secret;
use ylock_core::{ErrorKind, Ylock};
use ylock_engine_redis::options::Tls;
use ylock_engine_redis::{RedisEngine, driver_api};

use super::client_with;
use super::own_server::{Disk, OwnServer};

async fn is_held(ylock: &Ylock) -> bool {
    ylock.locks("users").write("alice").now().await.unwrap().is_none()
}

#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn server_database_and_login_are_those_of_the_client_unless_the_options_say_otherwise() {
    let server = OwnServer::start(Disk::Nothing).await;
    server.command(&["CONFIG", "SET", "requirepass", "secret"]).await;
    let url = |login: &str| format!("redis://{login}127.0.0.1:{}/3", server.port());
    let options = |login: &str| driver_api::options(&Client::open(url(login)).unwrap());
    let holder = client_with(options(":secret@")).await;
    let guard = holder.locks("users").write("alice").await.unwrap();
    let usual = || server.options().with_login("", Secret::new("secret"));
    assert!(is_held(&client_with(usual().with_database(3)).await).await);
    assert!(!is_held(&client_with(usual()).await).await);
    let logged_in = options("").with_login("", Secret::new("secret"));
    assert!(is_held(&client_with(logged_in.clone()).await).await);
    assert!(!is_held(&client_with(logged_in.with_database(2)).await).await);
    let no_such_database = usual().with_database(99);
    for wrong in [options(""), no_such_database] {
        let refused = RedisEngine::connect(&wrong).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Config, "{refused}");
        assert!(refused.to_string().contains("refused the database or the login"), "{refused}");
    }
    assert!(guard.unlock().await.unwrap().is_released());
}

#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_server_is_reached_over_a_socket_of_the_operating_system() {
    let folder = std::env::temp_dir().join(format!("ylock-{}", ylock_core::Owner::new()));
    std::fs::create_dir(&folder).unwrap();
    let path = folder.join("redis.sock").display().to_string();
    let server = OwnServer::start_with(Disk::Nothing, &["--unixsocket", &path]).await;
    let options = driver_api::options(&Client::open(format!("redis+unix://{path}")).unwrap());
    let ylock = client_with(options).await;
    let holder = ylock.locks("users").write("alice").await.unwrap();
    // A waiter is told: both of its connections go there.
    let waits = tokio::spawn(async move { ylock.locks("users").write("alice").await });
    assert!(is_held(&client_with(server.options()).await).await);
    assert!(holder.unlock().await.unwrap().is_released());
    drop(waits.await.unwrap().unwrap());
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn tls_is_not_said_twice() {
    let of_client = driver_api::options(&Client::open("redis://127.0.0.1:1").unwrap());
    of_client.check().unwrap();
    let error = of_client.with_tls(Tls::PlatformRoots).check().unwrap_err().to_string();
    assert!(error.contains("TLS"), "{error}");
    let shown = format!("{:?}", driver_api::options(&Client::open("redis://:secret@127.0.0.1:1").unwrap()));
    assert!(!shown.contains("secret"), "{shown}");
}
