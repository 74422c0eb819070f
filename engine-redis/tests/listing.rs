//! The keys of locks, page by page, beside keys that are none.

mod server;

use std::collections::BTreeSet;

use futures_util::future::try_join_all;
use redis::aio::MultiplexedConnection;
use server::Servers;
use ylock_core::engine::{Engine, Inspection};
use ylock_core::{ErrorKind, Guard, Key, Options, Owner, Ylock};
use ylock_engine_redis::RedisEngine;
use ylock_engine_redis::options::Notify;
use ylock_engine_redis::transport::place;
use ylock_testkit::answered;

/// More than there are on a page.
const MANY: usize = 1_700;

fn name() -> String {
    Owner::new().to_string()
}

async fn client(servers: Servers) -> Ylock {
    let engine = servers.engine(Notify::On).await;
    // Long: a wait bears for one lease that so many requests are more than a busy machine answers in time.
    Ylock::new(engine).with_options(Options::default().with_lease(server::LEASE * 10))
}

async fn held(ylock: &Ylock, group: &str, names: impl IntoIterator<Item = String>) -> Vec<Guard> {
    let locks = ylock.locks(group);
    let locks = &locks;
    let guards = names.into_iter().map(|name| async move { locks.write(name).await });
    try_join_all(guards).await.expect("free locks")
}

/// Returns the keys of all pages, and the number of pages.
async fn listed(engine: &RedisEngine, group: Option<&str>) -> (BTreeSet<Key>, usize) {
    let (mut keys, mut after, mut pages) = (BTreeSet::new(), None::<String>, 0);
    loop {
        // Beside three servers that let so many in at once, an answer may take longer than a request may.
        let page = answered(|| engine.keys(group, after.as_deref())).await.expect("the servers answer");
        keys.extend(page.keys);
        pages += 1;
        after = page.next;
        if after.is_none() {
            return (keys, pages);
        }
    }
}

async fn all_are_named_on(servers: Servers, least_pages: usize) {
    let (ylock, engine, group) = (client(servers).await, servers.engine(Notify::On).await, name());
    let guards = held(&ylock, &group, (0..MANY).map(|number| number.to_string())).await;
    let expected: BTreeSet<Key> =
        (0..MANY).map(|number| Key::new(&*group, number.to_string()).unwrap()).collect();
    let (keys, pages) = listed(&engine, Some(&group)).await;
    assert_eq!(keys, expected);
    assert!(pages >= least_pages, "{pages}");
    assert!(listed(&engine, None).await.0.is_superset(&expected));
    drop(guards);
}

#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn every_lock_of_a_server_is_named() {
    all_are_named_on(Servers::Single, MANY / 500).await;
}

#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn every_lock_of_the_master_that_sentinels_name_is_named() {
    all_are_named_on(Servers::Sentinel, MANY / 500).await;
}

#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn every_lock_of_a_cluster_is_named() {
    all_are_named_on(Servers::Cluster, 3).await;
}

/// Otherwise the pattern of one group would fit the locks of others, or would not fit its own.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn letters_that_mean_something_in_a_pattern_stand_for_themselves() {
    let (unique, odd) =
        (name(), ["*", "?", "[a]", "[^a]", "\\", "\\*", "}:1:", "{x}", ":", "é", "a\nb", "a"]);
    let engine = RedisEngine::connect(&Servers::Single.options().with_prefix("a*[b]?\\")).await.unwrap();
    let ylock = Ylock::new(engine).with_options(Options::default().with_lease(server::LEASE));
    let engine = RedisEngine::connect(&Servers::Single.options().with_prefix("a*[b]?\\")).await.unwrap();
    let groups = odd.map(|odd| format!("{odd}{unique}"));
    let mut guards = Vec::new();
    for group in &groups {
        guards.extend(held(&ylock, group, odd.map(str::to_owned)).await);
    }
    for group in &groups {
        let expected = odd.iter().map(|&name| Key::new(&**group, name).unwrap()).collect();
        assert_eq!(listed(&engine, Some(group)).await.0, expected);
    }
}

#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn what_is_no_lock_is_not_named_and_does_no_harm() {
    let (ylock, group) = (client(Servers::Single).await, name());
    let engine = Servers::Single.engine(Notify::On).await;
    let guards = held(&ylock, &group, ["held".to_owned()]).await;
    let key = |name: &str| Key::new(&*group, name).unwrap();
    let mut connection = server::raw().await;
    let length = group.len();
    let text_in_place = place("ylock", &key("a text"));
    let strangers = [
        text_in_place.clone().into_bytes(),
        format!("ylock:{{0}}:{length}:{group}:of no part").into_bytes(),
        format!("ylock:{{1}}:run:{length}:{group}:a job").into_bytes(),
        format!("ylock:{{1}}:0{length}:{group}:x").into_bytes(),
        [format!("ylock:{{1}}:{length}:{group}:").as_bytes(), &[0xff]].concat(),
        place("ylock:other", &key("under another prefix")).into_bytes(),
    ];
    set(&mut connection, &strangers).await;
    let (keys, _) = listed(&engine, Some(&group)).await;
    assert_eq!(keys, BTreeSet::from([key("held")]));
    assert!(listed(&engine, None).await.0.is_superset(&keys));
    let mut listing = ylock.list().of_group(&*group);
    let lock = listing.next().await.unwrap().expect("it is held");
    let Inspection { holders, queue, .. } = lock.seen.unwrap();
    assert_eq!((lock.key, holders.len(), queue.len()), (key("held"), 1, 0));
    assert!(listing.next().await.unwrap().is_none());
    redis::cmd("DEL").arg(&strangers).exec_async(&mut connection).await.unwrap();
    drop(guards);
}

/// The first of the keys becomes a text, the others become hashes.
async fn set(connection: &mut MultiplexedConnection, keys: &[Vec<u8>]) {
    let (text, hashes) = keys.split_first().unwrap();
    redis::cmd("SET").arg(text).arg("a text").exec_async(connection).await.unwrap();
    for key in hashes {
        redis::cmd("HSET").arg(key).arg(&["run", "1"]).exec_async(connection).await.unwrap();
    }
}

#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn what_no_page_has_said_is_an_error() {
    for servers in [Servers::Single, Servers::Cluster] {
        let engine = servers.engine(Notify::On).await;
        for wrong in ["", "0", "users alice", "0 - ", "-1 - one"] {
            let error = engine.keys(None, Some(wrong)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{servers:?} {wrong:?}");
        }
    }
}
