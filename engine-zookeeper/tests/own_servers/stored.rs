//! What other programs put, change and forbid among the nodes.

use std::time::Duration;

use ylock_core::url::Secret;
use ylock_core::{ErrorKind, LossReason, Unlocked};
use ylock_engine_zookeeper::ZookeeperEngine;
use ylock_engine_zookeeper::options::Acl;
use zookeeper_client::{Acls, CreateMode};

use super::own_server::OwnServer;
use super::server::proxy::{Link, Proxy};
use super::{FLOOR_WATCH, LOCK, LONG, client, client_with, contenders, options, queue_up, server, within};

/// The foreign node may be of a later version, and stand for a holder.
#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn a_foreign_node_in_a_lock_is_told_and_elsewhere_does_no_harm() {
    let server = OwnServer::start().await;
    let ylock = client(vec![server.host()]).await;
    drop(ylock.locks("users").write("alice").await.unwrap());
    let raw = server::raw(&[server.host()]).await;
    let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
    raw.mkdir(&format!("{LOCK}/lock-0000000001"), &options).await.unwrap();
    raw.mkdir("/ylock/something/else", &options).await.unwrap();
    raw.mkdir("/ylock/24/something", &options).await.unwrap();
    for _ in 0..2 {
        let error = within("it is told", ylock.locks("users").write("alice")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unexpected, "{error}");
        assert!(error.to_string().contains("lock-0000000001"), "{error}");
    }
    assert_eq!(ylock.locks("users").write("alice").now().await.unwrap_err().kind(), ErrorKind::Unexpected);
    super::until("nothing of it is left", async || contenders(&[server.host()], LOCK).await.len() == 1).await;
    drop(within("another name", ylock.locks("users").write("bob")).await.unwrap());
    raw.delete(&format!("{LOCK}/lock-0000000001"), None).await.unwrap();
    drop(within("it is free", ylock.locks("users").write("alice")).await.unwrap());
}

#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn a_node_that_was_deleted_by_hand_is_told_at_the_next_renewal() {
    let server = OwnServer::start().await;
    let (one, two) = (client(vec![server.host()]).await, client(vec![server.host()]).await);
    let raw = server::raw(&[server.host()]).await;
    let guard = one.locks("users").write("alice").await.unwrap();
    for child in raw.list_children(LOCK).await.unwrap() {
        raw.delete(&format!("{LOCK}/{child}"), None).await.unwrap();
    }
    raw.delete(LOCK, None).await.unwrap();
    assert_eq!(within("the holder is told", guard.lost()).await, LossReason::Gone);
    assert_eq!(within("given back", guard.unlock()).await.unwrap(), Unlocked::WasLost);
    let guard = within("another one gets in", two.locks("users").write("alice")).await.unwrap();
    // A waiter finds out too, and queues again.
    let waiting = queue_up(&one, &two).await;
    for child in raw.list_children(LOCK).await.unwrap() {
        if raw.get_data(LOCK).await.is_ok() && !child.ends_with("0000000000") {
            raw.delete(&format!("{LOCK}/{child}"), None).await.unwrap();
        }
    }
    tokio::time::sleep(super::LEASE * 3).await;
    assert!(guard.is_valid() && !waiting.is_finished());
    drop(guard);
    drop(within("the waiter gets in", waiting).await.unwrap());
}

#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn everything_that_was_deleted_by_hand_is_made_again() {
    let server = OwnServer::start().await;
    let ylock = client_with(options(vec![server.host()]).with_base("/some/where")).await;
    drop(ylock.locks("users").write("alice").await.unwrap());
    let raw = server::raw(&[server.host()]).await;
    super::until("the lock's node is gone", async || {
        raw.count_descendants_number("/some/where").await == Ok(2)
    })
    .await;
    for path in ["/some/where/24", "/some/where/token-floor", "/some/where", "/some"] {
        raw.delete(path, None).await.unwrap();
    }
    let guard = within("it works again", ylock.locks("users").write("alice")).await.unwrap();
    assert_eq!(raw.get_data("/some/where/24/users:alice").await.unwrap().0, b"5:usersalice");
    tokio::time::sleep(super::LEASE).await;
    assert!(guard.is_valid());
    assert_eq!(raw.get_data("/some/where/token-floor").await.unwrap().0, b"0");
}

#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn nodes_of_the_creator_are_closed_to_others() {
    let server = OwnServer::start().await;
    let login = |user: &str, password: &str| {
        options(vec![server.host()]).with_acl(Acl::Creator).with_login(user, Secret::new(password))
    };
    let ylock = client_with(login("me", "p@ss")).await;
    let same = client_with(login("me", "p@ss")).await;
    let guard = ylock.locks("users").write("alice").await.unwrap();
    assert!(same.locks("users").write("alice").now().await.unwrap().is_none());
    for options in [login("me", "wrong"), login("you", "p@ss"), options(vec![server.host()])] {
        // The path is there, so connecting works, and only the first lock shows it.
        let error = match ZookeeperEngine::connect(&options).await {
            Ok(engine) => {
                let stranger = ylock_core::Ylock::new(engine);
                within("it is told", stranger.locks("users").write("alice")).await.unwrap_err()
            }
            Err(error) => error,
        };
        assert_eq!(error.kind(), ErrorKind::Config, "{error}");
        assert!(!format!("{error:?} {error}").contains("p@ss"), "{error}");
    }
    assert!(guard.is_valid());
    drop(guard);
    drop(within("the same user", same.locks("users").write("alice")).await.unwrap());
}

/// The server would not start again if the end of one session were too much for one record: so there are several.
#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn very_many_locks_are_shared_out_so_that_the_server_can_end_each_session_and_start_again() {
    const LOCKS: usize = 10_000;
    // A busy machine does not answer for seconds where so much is asked; and in the end the sessions are waited for.
    const LEASE: Duration = Duration::from_secs(12);
    let mut server = OwnServer::start().await;
    // A long path, so that fewer locks are enough.
    let base = format!("/{}", "x".repeat(199));
    let proxy = Proxy::before(&[server.host()]).await;
    let ylock = client_with(options(proxy.hosts()).with_base(&base).with_lease(LEASE)).await;
    let name = |number: usize| format!("{number:05}{}", "x".repeat(30));
    let locks = ylock.locks("g");
    let tasks = (0..32).map(|task| {
        let locks = locks.clone();
        tokio::spawn(async move {
            let mut guards = Vec::new();
            for number in (task..LOCKS).step_by(32) {
                guards.push(locks.write(name(number)).await.unwrap());
            }
            guards
        })
    });
    let tasks: Vec<_> = tasks.collect();
    let mut held = Vec::new();
    for task in tasks {
        held.extend(ylock_testkit::within(Duration::from_secs(100), "they get in", task).await.unwrap());
    }
    // Each lock has been renewed since, and each can be given back.
    tokio::time::sleep(LEASE / 2).await;
    assert!(held.len() == LOCKS && held.iter().all(|guard| guard.is_valid()));
    let (first, last) = (held.remove(0), held.pop().unwrap());
    for guard in [first, last] {
        assert_eq!(within("given back", guard.unlock()).await.unwrap(), ylock_core::Unlocked::Released);
    }
    // The locks are not given back one by one: the sessions end with all of them.
    let other = client(vec![server.host()]).await;
    let raw = server::raw(&[server.host()]).await;
    assert!(raw.count_descendants_number(&base).await.unwrap() >= 2 * held.len());
    proxy.set(Link::Cut);
    super::until("the sessions end", async || {
        raw.count_descendants_number(&base).await.is_ok_and(|count| count <= 300 + held.len())
    })
    .await;
    server.kill();
    server.start_again().await;
    super::until("it serves again", async || other.inspect("users", "alice").await.is_ok()).await;
}

#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn each_who_waits_has_one_watch_and_a_release_wakes_one() {
    let server = OwnServer::start().await;
    let calm = options(vec![server.host()]).with_lease(LONG);
    let holder = client_with(calm.clone()).await;
    let guard = holder.locks("users").write("alice").await.unwrap();
    let mut waiting = Vec::new();
    for _ in 0..20 {
        let client = client_with(calm.clone()).await;
        waiting.push((queue_up(&client, &holder).await, client));
    }
    let sessions = waiting.len() as u64 + 1;
    let watches = async || server.number("zk_watch_count").await;
    super::until("all watch", async || watches().await == 20 + sessions * FLOOR_WATCH).await;
    let packets = async || server.number("zk_packets_received").await;
    let before = packets().await;
    assert!(guard.unlock().await.unwrap().is_released());
    let (first, _client) = waiting.remove(0);
    let guard = within("the first one gets in", first).await.unwrap();
    let asked = packets().await - before;
    assert!(asked < 10, "{asked} requests for one hand-over with 20 who wait");
    // The one that had waited for the holder, because it was the second before it, now waits for the new one.
    super::until("all others watch", async || watches().await == 19 + sessions * FLOOR_WATCH).await;
    drop(guard);
    for (waiting, _client) in waiting {
        drop(within("the next one gets in", waiting).await.unwrap());
    }
    // The holder's session and that of the first waiter are still there.
    super::until("no watch of a waiter is left", async || watches().await == 2 * FLOOR_WATCH).await;
    assert!(contenders(&[server.host()], LOCK).await.is_empty());
}

#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn a_quota_that_is_used_up_is_told_and_what_is_held_can_be_given_back() {
    let server = OwnServer::start_with("enforceQuota=true").await;
    let ylock = client(vec![server.host()]).await;
    let guard = within("it gets in", ylock.locks("users").write("alice")).await.unwrap();
    let raw = server::raw(&[server.host()]).await;
    let open = CreateMode::Persistent.with_acls(Acls::anyone_all());
    raw.mkdir("/zookeeper/quota/ylock", &open).await.unwrap();
    let (limits, nothing) = (b"count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit=4", b"count=4,bytes=0");
    raw.create("/zookeeper/quota/ylock/zookeeper_limits", limits, &open).await.unwrap();
    raw.create("/zookeeper/quota/ylock/zookeeper_stats", nothing, &open).await.unwrap();
    let error = within("it is told", ylock.locks("users").write("bob")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    assert!(error.to_string().contains("quota"), "{error}");
    assert!(guard.is_valid());
    assert_eq!(within("given back", guard.unlock()).await.unwrap(), Unlocked::Released);
}

/// More than fits into one answer of the usual size.
#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn a_lock_with_a_megabyte_of_contenders_is_a_lock() {
    const CONTENDERS: usize = 25_000;
    let server = OwnServer::start().await;
    let ylock = client(vec![server.host()]).await;
    let raw = server::raw(&[server.host()]).await;
    let open = CreateMode::Persistent.with_acls(Acls::anyone_all());
    let sequential = CreateMode::PersistentSequential.with_acls(Acls::anyone_all());
    raw.mkdir(LOCK, &open).await.unwrap();
    let content = format!("2 {} 0 0 0 a client", ylock_core::Owner::new());
    for first in (0..CONTENDERS).step_by(500) {
        let prefixes: Vec<_> = (first..first + 500).map(|id| format!("{LOCK}/r-{id:032x}-1-x-")).collect();
        let made = prefixes.iter().map(|prefix| raw.create(prefix, content.as_bytes(), &sequential));
        futures_util::future::try_join_all(made).await.unwrap();
    }
    let reader = within("a reader joins them", ylock.locks("users").read("alice")).await.unwrap();
    drop(reader);
    let before = server.number("zk_packets_received").await;
    assert!(within("a writer does not", ylock.locks("users").write("alice").now()).await.unwrap().is_none());
    let asked = server.number("zk_packets_received").await - before;
    assert!(asked < 50, "{asked} requests for a refused try: it looks at one of the contenders, not at each");
    let names = raw.list_children(LOCK).await.unwrap();
    assert!(names.iter().map(String::len).sum::<usize>() > 1 << 20, "a megabyte");
    for some in names.chunks(500) {
        let paths: Vec<_> = some.iter().map(|name| format!("{LOCK}/{name}")).collect();
        futures_util::future::join_all(paths.iter().map(|path| raw.delete(path, None))).await;
    }
    drop(within("it is free", ylock.locks("users").write("alice")).await.unwrap());
}
