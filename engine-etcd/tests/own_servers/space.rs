//! A store whose space is used up: it takes no puts until an operator has made room.

use ylock_core::{ErrorKind, LossReason};
use ylock_testkit::{poll_once, quiet_time};

use super::own_cluster::{Cluster, base64, field};
use super::{LEASE, client, granted, queue_up, until, within};

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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs etcd: run `cargo xtask test`"]
async fn what_is_held_stays_held_without_space_and_what_is_new_is_refused_in_time() {
    let cluster = Cluster::start_with(&[QUOTA.to_owned()]).await;
    let [one, two, new] =
        [client(cluster.hosts()).await, client(cluster.hosts()).await, client(cluster.hosts()).await];
    let guard = one.locks("users").write("alice").await.unwrap();
    let waiting = queue_up(&two, &two).await;
    use_up(&cluster).await;

    for (ylock, what) in [(&one, "a client that has an etcd lease"), (&new, "one that has none")] {
        let error = within(what, ylock.locks("users").try_write("bob")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:#}");
        assert!(error.to_string().contains("space of the servers is used up"), "{what}: {error:#}");
        // Keep-alives are answered all the time.
        let since = quiet_time();
        let error = within(what, ylock.locks("users").write("bob")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:#}");
        let took = quiet_time() - since;
        assert!(took < LEASE * 3 / 2, "{what} was told after {took:?}");
    }
    // More than the lease has gone by.
    assert!(guard.is_valid() && !waiting.is_finished());

    // A task of the same client waits as well: the release cannot take its place along.
    let locks = one.locks("users");
    let mut behind = Box::pin(locks.write("alice"));
    assert!(poll_once(behind.as_mut()).await.is_none());
    let token = guard.token();
    assert!(within("given back", guard.unlock()).await.unwrap().is_released());
    let next = granted(waiting).await;
    assert!(next.token() > token);

    make_room(&cluster).await;
    drop(within("what was refused gets in", new.locks("users").write("bob")).await.unwrap());
    drop(next);
    drop(within("the task behind gets in", behind).await.unwrap());
}

/// Its etcd lease ends all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs etcd: run `cargo xtask test`"]
async fn a_holder_that_is_cut_off_is_passed_over_without_space() {
    let cluster = Cluster::start_with(&[QUOTA.to_owned()]).await;
    let line = ylock_testkit::own_servers::Proxy::before(&cluster.hosts()).await;
    let (gone, two) = (client(line.hosts()).await, client(cluster.hosts()).await);
    let guard = gone.locks("users").write("alice").await.unwrap();
    let waiting = queue_up(&two, &two).await;
    use_up(&cluster).await;
    line.set(ylock_testkit::own_servers::Link::Cut);
    assert_eq!(within("the holder is told", guard.lost()).await, LossReason::Lapsed);
    let token = guard.token();
    assert!(granted(waiting).await.token() > token);
    until("nothing is left", async || super::waiters(&two).await == 0).await;
}
