//! The files of `examples/config`: each is right, and says what the example says of it.
#![cfg(feature = "serde")]

#[path = "../examples/config/settings.rs"]
mod settings;

use std::time::Duration;

#[tokio::test]
async fn a_developer_and_tests_need_no_server() {
    for environment in ["dev", "test"] {
        let settings = settings::read(environment).unwrap();
        assert!(settings.listen.starts_with("127.0.0.1:"));
        let ylock = ylock::connect_with(&settings.locks).await.unwrap();
        assert_eq!(ylock.engine_name(), "memory");
        let max_wait = (environment == "test").then_some(Duration::from_secs(5));
        assert_eq!(ylock.options().max_wait(), max_wait);
        assert!(ylock.locks("orders").write("4711").await.unwrap().unlock().await.unwrap().is_released());
    }
}

#[test]
fn production_wants_its_password_from_outside_and_the_engine_compiled_in() {
    let error = settings::read("production").unwrap_err().to_string();
    let part = if cfg!(feature = "redis") { "has no password" } else { "the Cargo feature \"redis\"" };
    assert!(error.contains(part), "{error}");
}

#[test]
fn another_environment_is_refused_by_name() {
    let error = settings::read("prodution").unwrap_err().to_string();
    assert!(error.contains("\"prodution\"") && error.contains("\"production\""), "{error}");
}
