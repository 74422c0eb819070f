//! Servers that want a login.

use std::time::Duration;

use ylock_core::ErrorKind;
use ylock_core::url::Secret;
use ylock_engine_etcd::{EtcdEngine, EtcdOptions};

use super::own_cluster::{Cluster, base64};
use super::{LEASE, within};

/// For how long a login counts. Signed tokens end with a whole second of the clock, up to a second earlier.
const TOKEN: Duration = Duration::from_secs(2);

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

/// Tokens of logins end: those that are random numbers after a time in which they were not used, and signed ones in any case.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs etcd: run `cargo xtask test`"]
async fn a_login_that_has_ended_is_renewed_and_costs_no_lock() {
    // A login takes long where the machine has much to do.
    let lease = LEASE * 2;
    let secret = std::env::temp_dir().join(format!("ylock-secret-{}", ylock_core::Owner::new()));
    std::fs::write(&secret, "signs all tokens").unwrap();
    let signed =
        format!("--auth-token=jwt,sign-method=HS256,priv-key={},ttl={}s", secret.display(), TOKEN.as_secs());
    for tokens in [format!("--auth-token-ttl={}", TOKEN.as_secs()), signed] {
        // By default a login costs a tenth of a second of a core, and here there are several each second.
        let cluster = Cluster::start_with(&[tokens, "--bcrypt-cost=4".to_owned()]).await;
        want_login(&cluster).await;
        let client = async || {
            let options =
                EtcdOptions::new(cluster.hosts()).with_lease(lease).with_login("me", Secret::new("hunter2"));
            let engine = EtcdEngine::connect(&options).await.unwrap();
            ylock_core::Ylock::new(engine).with_options(ylock_core::Options::default().with_lease(lease))
        };
        let [one, two, idle] = [client().await, client().await, client().await];
        let guard = one.locks("users").write("alice").await.unwrap();
        let token = guard.token().unwrap();
        let waiting = super::queue_up(&two, &two).await;
        for _ in 0..2 {
            // Longer than any token of `idle` lives: what it does next begins with one that has ended.
            tokio::time::sleep(TOKEN * 2).await;
            let seen = within("it is answered", idle.inspect("users", "alice")).await.unwrap();
            assert_eq!((seen.holders.len(), seen.queue.len()), (1, 1));
            assert!(guard.is_valid() && !waiting.is_finished());
            tokio::time::sleep(TOKEN * 2).await;
            assert!(within("it is answered", idle.verify("users", "alice", token)).await.unwrap());
        }
        tokio::time::sleep(TOKEN * 2).await;
        assert!(idle.locks("users").write("alice").now().await.unwrap().is_none());
        assert!(within("given back", guard.unlock()).await.unwrap().is_released());
        assert!(super::granted(waiting).await.token().unwrap() > token);
    }
    std::fs::remove_file(secret).unwrap();
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
