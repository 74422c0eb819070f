//! Damaged locks, logins, and what a user of the server must be allowed to do.
#![allow(clippy::disallowed_methods, reason = "tests start tasks of their own")]

mod server;

use std::time::Duration;

use server::Servers;
use ylock_core::url::Secret;
use ylock_core::{ErrorKind, Guard, Key, Options, Ylock};
use ylock_engine_redis::{RedisEngine, RedisOptions};

/// The rights that `guarantees.md` asks for.
const RIGHTS: &str = "resetkeys resetchannels -@all ~ylock:* &ylock:* +evalsha +eval +script|load +time +hmget +hget +hset +hdel +hkeys \
     +hgetall +scan +pexpireat +publish +pubsub|numsub +subscribe +hello +ping +info";

/// The further rights that `guarantees.md` asks for in a cluster.
const RIGHTS_IN_A_CLUSTER: &str =
    "+cluster|info +cluster|slots +asking +ssubscribe +spublish +pubsub|shardnumsub";

fn name() -> String {
    ylock_core::Owner::new().to_string()
}

async fn client(options: &RedisOptions) -> Ylock {
    let engine = RedisEngine::connect(options).await.expect("the server under test answers");
    Ylock::new(engine).with_options(Options::default().with_lease(options.lease()))
}

/// The key of a lock of a group that no other test uses: found by taking the lock.
async fn place_of(ylock: &Ylock, group: &str) -> String {
    let guard = ylock.locks(group).write("name").await.unwrap();
    let mut connection = server::raw().await;
    let pattern = format!("ylock:*:{group}:name");
    let keys: Vec<String> = redis::cmd("KEYS").arg(pattern).query_async(&mut connection).await.unwrap();
    assert!(guard.unlock().await.unwrap().is_released());
    keys.into_iter().next().expect("it is there while it is held")
}

#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn something_else_in_the_place_of_a_lock_is_an_error_that_names_it() {
    let (ylock, group) = (client(&Servers::Single.options()).await, name());
    let place = place_of(&ylock, &group).await;
    let mut connection = server::raw().await;
    redis::cmd("DEL").arg(&place).exec_async(&mut connection).await.unwrap();
    redis::cmd("SET").arg(&place).arg("a text").exec_async(&mut connection).await.unwrap();
    let error = ylock.locks(&*group).write("name").await.unwrap_err();
    assert_eq!(
        (error.kind(), error.key()),
        (ErrorKind::Unexpected, Some(&Key::new(&*group, "name").unwrap()))
    );
    assert_eq!(ylock.inspect(&*group, "name").await.unwrap_err().kind(), ErrorKind::Unexpected);
    redis::cmd("DEL").arg(&place).exec_async(&mut connection).await.unwrap();
    assert!(ylock.locks(&*group).write("name").await.unwrap().is_valid());
}

#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn garbage_in_a_lock_is_an_error_and_never_acquired() {
    let mut connection = server::raw().await;
    // A place without a waiter, a waiter and a holder without a lease, texts where numbers should be.
    for garbage in [
        &["hn", "many"][..],
        &["t", "a token"],
        &["f", "first"],
        &["f", "x", "k", "1"],
        &["f", "x", "k", "1", "a:x", "nobody"],
        &["hn", "1", "h:x", "w"],
        // A queue without an end must not keep the server for ever: neither where its waiters are let in, nor where their times are made
        // to follow a clock that was set back, nor where a place is looked for.
        &[
            "f",
            "x",
            "k",
            "2",
            "q:x",
            "y",
            "q:y",
            "x",
            "a:x",
            "r 9000000000000 9000000000000 1 1 1 z",
            "a:y",
            "r 9000000000000 9000000000000 1 1 2 z",
        ],
        &[
            "hn",
            "1",
            "w",
            "1",
            "m",
            "9000000000000",
            "l",
            "9000000000000",
            "f",
            "x",
            "k",
            "2",
            "q:x",
            "y",
            "q:y",
            "x",
            "a:x",
            "r 9000000000000 1000 1 1 1 -",
            "a:y",
            "r 9000000000000 1000 1 1 2 -",
        ],
        &[
            "hn",
            "1",
            "w",
            "1",
            "m",
            "9000000000000",
            "l",
            "9000000000000",
            "f",
            "x",
            "k",
            "2",
            "q:x",
            "y",
            "q:y",
            "x",
            "a:x",
            "r 9000000000000 9000000000000 1 1 1 -",
            "a:y",
            "r 9000000000000 9000000000000 1 1 2 -",
        ],
    ] {
        let (ylock, group) = (client(&Servers::Single.options()).await, name());
        let place = place_of(&ylock, &group).await;
        redis::cmd("HSET").arg(&place).arg(garbage).exec_async(&mut connection).await.unwrap();
        let locks = ylock.locks(&*group);
        match locks.write("name").within(Duration::from_millis(100)).await {
            Ok(guard) => assert!(guard.is_none(), "{garbage:?}: {guard:?}"),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Unexpected, "{garbage:?}: {error}"),
        }
        redis::cmd("DEL").arg(&place).exec_async(&mut connection).await.unwrap();
    }
}

/// Where the queue ends is written twice: in the links and in a field of its own. A waiter that joins relies on both.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_queue_whose_end_is_not_where_it_should_be_is_an_error() {
    let mut connection = server::raw().await;
    let held = ["hn", "1", "w", "1", "m", "9000000000000", "l", "9000000000000"];
    let waits = "r 9000000000000 9000000000000 1 1 1 -";
    for (queue, what) in [
        (&["f", "x", "k", "1", "a:x", waits, "q:x", "-"][..], "it is missing"),
        (
            &["f", "x", "z", "x", "k", "2", "a:x", waits, "q:x", "y", "a:y", waits, "q:y", "-"],
            "it is in the middle",
        ),
        (&["z", "x"], "there is no waiter"),
    ] {
        let (ylock, group) = (client(&Servers::Single.options()).await, name());
        let place = place_of(&ylock, &group).await;
        redis::cmd("HSET").arg(&place).arg(&held).arg(queue).exec_async(&mut connection).await.unwrap();
        let asked = ylock.locks(&*group).write("name").within(Duration::from_millis(100)).await;
        let error = asked.expect_err(what);
        assert_eq!(error.kind(), ErrorKind::Unexpected, "{what}: {error}");
        assert!(format!("{error:#}").contains("the last waiter is another"), "{what}: {error:#}");
        redis::cmd("DEL").arg(&place).exec_async(&mut connection).await.unwrap();
    }
}

#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_user_with_the_rights_of_the_docs_can_do_everything() {
    everything_as_a_user(Servers::Single, RIGHTS).await;
}

#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_user_with_the_rights_of_the_docs_can_do_everything_in_a_cluster() {
    everything_as_a_user(Servers::Cluster, &format!("{RIGHTS} {RIGHTS_IN_A_CLUSTER}")).await;
}

async fn everything_as_a_user(servers: Servers, rights: &str) {
    let (user, password) = (name(), name());
    let mut connections = servers.raw().await;
    for connection in &mut connections {
        let mut create = redis::cmd("ACL");
        create.arg("SETUSER").arg(&user).arg("on").arg(format!(">{password}"));
        rights.split_whitespace().for_each(|right| {
            create.arg(right);
        });
        create.exec_async(connection).await.unwrap();
    }
    let options = servers.options().with_login(&user, Secret::new(password));
    let (one, two) = (client(&options).await, client(&options).await);
    let group = name();
    // The first time the waiter may not be listening yet when its turn comes.
    for _ in 0..3 {
        drop(reader_behind_writer(&one, &two, &group).await);
    }
    let guards = reader_behind_writer(&one, &two, &group).await;
    assert!(two.list().of_group(&*group).next().await.unwrap().is_some());
    assert_eq!(one.revoke(&*group, "name").await.unwrap(), 2);
    drop(guards);
    one.close().await;
    two.close().await;
    for connection in &mut connections {
        // A right that is missing need not be an error: without messages waiters ask by themselves.
        let refused: Vec<Vec<redis::Value>> =
            redis::cmd("ACL").arg("LOG").query_async(connection).await.unwrap();
        let of_user =
            |entry: &&Vec<redis::Value>| entry.contains(&redis::Value::BulkString(user.clone().into()));
        assert_eq!(refused.iter().find(of_user), None);
        redis::cmd("ACL").arg("DELUSER").arg(&user).exec_async(connection).await.unwrap();
    }
}

/// The first client writes and goes on as a reader, and so lets the second in, which waited to read.
async fn reader_behind_writer(one: &Ylock, two: &Ylock, group: &str) -> [Guard; 2] {
    let guard = one.locks(group).write("name").await.unwrap();
    let waiting = tokio::spawn({
        let locks = two.locks(group);
        async move { locks.read("name").await.unwrap() }
    });
    while one.inspect(group, "name").await.unwrap().queue.is_empty() {
        tokio::task::yield_now().await;
    }
    [guard.downgrade().await.unwrap(), waiting.await.unwrap()]
}

#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_wrong_password_is_told_and_not_shown() {
    let options = Servers::Single.options().with_login("", Secret::new("hunter2"));
    let error = RedisEngine::connect(&options).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    assert!(!format!("{error} {error:?} {options:?}").contains("hunter2"));
}

#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn databases_are_strangers() {
    let (one, two) =
        (client(&Servers::Single.options()).await, client(&Servers::Single.options().with_database(1)).await);
    let group = name();
    let _here = one.locks(&*group).write("name").await.unwrap();
    assert!(two.locks(&*group).write("name").now().await.unwrap().is_some());
    assert!(one.locks(&*group).write("name").now().await.unwrap().is_none());
}

#[tokio::test]
async fn nobody_there_is_told_in_time() {
    let port = ylock_testkit::own_servers::free_port("127.0.0.1");
    let options = RedisOptions::new("127.0.0.1", port).with_connect_timeout(Duration::from_secs(2));
    let error = RedisEngine::connect(&options).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
}
