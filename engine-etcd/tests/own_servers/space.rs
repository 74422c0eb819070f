//! A store whose space is used up: it takes no puts until an operator has made room.

use ylock_core::{ErrorKind, LossReason};
use ylock_testkit::quiet_time;

use super::own_cluster::{Cluster, base64, field};
use super::{LEASE, client, until, within};

/// Less than two megabytes are never free in it, and more than that takes long to fill.
const QUOTA: &str = "--quota-backend-bytes=4194304";

/// Puts what is no lock until the store takes nothing more.
async fn use_up(cluster: &Cluster) {
    let value = base64(&[b'x'; 150_000]);
    for number in 0..100 {
        let key = base64(format!("filler/{number}").as_bytes());
        let put = format!(r#"{{"key":"{key}","value":"{value}"}}"#);
        if cluster.0[0].post("/v3/kv/put", &put).await.unwrap().contains("database space exceeded") {
            return;
        }
    }
    panic!("there is room for everything");
}

/// What an operator does then.
async fn make_room(cluster: &Cluster) {
    let (begin, end) = (base64(b"filler/"), base64(b"filler0"));
    let post = async |path: &str, body: &str| {
        let said = cluster.0[0].post(path, body).await.unwrap();
        assert!(said.contains("200 OK"), "{path}: {said}");
        said
    };
    let said = post("/v3/kv/deleterange", &format!(r#"{{"key":"{begin}","range_end":"{end}"}}"#)).await;
    let revision = field(&said, "revision").unwrap();
    post("/v3/kv/compaction", &format!(r#"{{"revision":"{revision}","physical":true}}"#)).await;
    post("/v3/maintenance/defragment", "{}").await;
    let alarms = post("/v3/maintenance/alarm", r#"{"action":"GET"}"#).await;
    let member = field(&alarms, "memberID").expect("there is an alarm");
    let disarm = format!(r#"{{"action":"DEACTIVATE","memberID":"{member}","alarm":"NOSPACE"}}"#);
    post("/v3/maintenance/alarm", &disarm).await;
}

/// A lease that is held is renewed by a put. So all is lost, and told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs etcd: run `cargo xtask test`"]
async fn what_is_held_is_lost_without_space_and_told_and_what_is_new_is_refused_in_time() {
    let cluster = Cluster::start_with(&[QUOTA.to_owned()]).await;
    let [one, two, new] =
        [client(cluster.hosts()).await, client(cluster.hosts()).await, client(cluster.hosts()).await];
    let guard = one.locks("users").write("alice").await.unwrap();
    let locks = two.locks("users");
    let waiting = tokio::spawn(async move { locks.write("alice").await });
    until("it waits", async || super::waiters(&two).await == 1).await;
    use_up(&cluster).await;

    for (ylock, what) in [(&one, "a client that has an etcd lease"), (&new, "one that has none")] {
        let error = within(what, ylock.locks("users").write("bob").now()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:#}");
        assert!(error.to_string().contains("space of the servers is used up"), "{what}: {error:#}");
        let since = quiet_time();
        let error = within(what, ylock.locks("users").write("bob")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:#}");
        let took = quiet_time() - since;
        assert!(took < LEASE * 3 / 2, "{what} was told after {took:?}");
    }
    assert_eq!(within("the holder is told", guard.lost()).await, LossReason::Lapsed);
    // The waiter got in when the lease of the holder had ended, if it could bear it for so long, and was told then as well.
    match within("the waiter is told", waiting).await.unwrap() {
        Ok(entered) => drop(within("it is told", entered.lost()).await),
        Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:#}"),
    }
    let token = guard.token();
    drop(guard);

    make_room(&cluster).await;
    drop(within("what was refused gets in", new.locks("users").write("bob")).await.unwrap());
    let next = within("the lock is free", new.locks("users").write("alice")).await.unwrap();
    assert!(next.token() > token);
}
