//! Servers that want a login.

use ylock_core::ErrorKind;
use ylock_core::url::Secret;
use ylock_engine_etcd::{EtcdEngine, EtcdOptions};

use super::own_cluster::{Cluster, base64};
use super::{LEASE, within};

/// Makes the servers want a login, and a user that may read and write below the prefix, and nothing else.
async fn want_login(cluster: &Cluster) {
    let (begin, end) = (base64(b"ylock/"), base64(b"ylock0"));
    let permission = format!(
        r#"{{"name":"locks","perm":{{"permType":"READWRITE","key":"{begin}","range_end":"{end}"}}}}"#
    );
    let wanted = [
        ("user/add", r#"{"name":"root","password":"hunter1"}"#),
        ("role/add", r#"{"name":"root"}"#),
        ("user/grant", r#"{"user":"root","role":"root"}"#),
        ("role/add", r#"{"name":"locks"}"#),
        ("role/grant", permission.as_str()),
        ("user/add", r#"{"name":"me","password":"hunter2"}"#),
        ("user/grant", r#"{"user":"me","role":"locks"}"#),
        ("enable", "{}"),
    ];
    for (path, body) in wanted {
        let said = cluster.0[0].post(&format!("/v3/auth/{path}"), body).await.unwrap();
        assert!(said.contains("200 OK"), "{path}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs etcd: run `cargo xtask test`"]
async fn a_user_with_rights_on_the_prefix_is_enough_and_what_is_wrong_is_said() {
    let cluster = Cluster::start(1).await;
    want_login(&cluster).await;
    let options = |password| {
        EtcdOptions::new(cluster.hosts()).with_lease(LEASE).with_login("me", Secret::new(password))
    };
    let engine = EtcdEngine::connect(&options("hunter2")).await.unwrap();
    let lease = ylock_core::Options::default().with_lease(LEASE);
    let ylock = ylock_core::Ylock::new(engine).with_options(lease.clone());
    let guard = within("it gets in", ylock.locks("users").write("alice")).await.unwrap();
    // Renewed, and watched by one that waits.
    let waiting = super::queue_up(&ylock, &ylock).await;
    tokio::time::sleep(LEASE / 2).await;
    assert!(guard.is_valid());
    drop(guard);
    drop(super::granted(waiting).await);
    ylock.close().await;

    let refused = EtcdEngine::connect(&options("hunter3")).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Config, "{refused:#}");
    assert!(!format!("{refused:#} {refused:?}").contains("hunter"));
    let elsewhere = EtcdEngine::connect(&options("hunter2").with_prefix("other")).await.unwrap();
    let ylock = ylock_core::Ylock::new(elsewhere).with_options(lease);
    let refused = within("it is refused", ylock.locks("users").write("alice")).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Config, "{refused:#}");
}
