//! The keys of locks, page by page, beside nodes that are none.
#![allow(clippy::disallowed_methods, reason = "the proxies of the tests start tasks of their own")]

mod server;

use std::collections::BTreeSet;

use futures_util::future::try_join_all;
use server::Servers;
use ylock_core::engine::Engine;
use ylock_core::{ErrorKind, Guard, Key, Options, Owner, Ylock};
use ylock_engine_zookeeper::ZookeeperEngine;
use zookeeper_client::{Acls, CreateMode};

/// More than there are on a page.
const MANY: usize = 300;

fn group() -> String {
    // Short: with a name behind it, it is written out.
    Owner::new().to_string()[..12].to_owned()
}

async fn client(base: &str) -> (Ylock, ZookeeperEngine) {
    let options = server::options(Servers::One.hosts()).with_base(base);
    let connect = async || ZookeeperEngine::connect(&options).await.expect("the servers under test answer");
    let options = Options::default().with_lease(server::LEASE);
    (Ylock::new(connect().await).with_options(options), connect().await)
}

async fn held(ylock: &Ylock, group: &str, names: impl IntoIterator<Item = String>) -> Vec<Guard> {
    let locks = ylock.locks(group);
    let locks = &locks;
    let guards = names.into_iter().map(|name| async move { locks.write(name).await });
    try_join_all(guards).await.expect("free locks")
}

/// Returns the keys of all pages.
async fn listed(engine: &ZookeeperEngine, group: Option<&str>) -> Vec<Key> {
    let (mut keys, mut after) = (Vec::new(), None::<String>);
    loop {
        let page = engine.keys(group, after.as_deref()).await.expect("the servers answer");
        assert!(page.keys.len() <= 100);
        keys.extend(page.keys);
        after = page.next;
        if after.is_none() {
            return keys;
        }
    }
}

/// Returns the keys of all pages, none of which may come twice.
async fn listed_once(engine: &ZookeeperEngine, group: Option<&str>) -> BTreeSet<Key> {
    let keys = listed(engine, group).await;
    let count = keys.len();
    let keys = BTreeSet::from_iter(keys);
    assert_eq!(keys.len(), count, "none comes twice");
    keys
}

#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn every_lock_is_named_whatever_its_names_are() {
    let (ylock, engine) = client(server::BASE).await;
    let (group, long) = (group(), "x".repeat(50));
    let names = |number: usize| match number % 3 {
        0 => format!("{number}"),
        1 => format!("{number}{long}"),
        _ => format!("{number}:/%é#"),
    };
    let other = format!("{group}:");
    let _guards = held(&ylock, &group, (0..MANY).map(names)).await;
    let _others = held(&ylock, &other, (0..MANY).map(names)).await;
    let all_of = |group: &str| {
        (0..MANY).map(|number| Key::new(group, names(number)).unwrap()).collect::<BTreeSet<_>>()
    };
    assert_eq!(listed_once(&engine, Some(&group)).await, all_of(&group));
    assert_eq!(listed_once(&engine, Some(&other)).await, all_of(&other));
    let both: BTreeSet<_> = all_of(&group).union(&all_of(&other)).cloned().collect();
    assert!(listed_once(&engine, None).await.is_superset(&both));
}

/// Some hundred locks in one bucket, as where there are a hundred thousand: the names are sought that go there.
#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn a_bucket_with_more_locks_than_a_page_has_is_named_as_a_whole() {
    let base = format!("{}-{}", server::BASE, Owner::new());
    let (ylock, engine) = client(&base).await;
    let raw = server::raw(&Servers::One.hosts()).await;
    let guards = held(&ylock, "users", ["alice".to_owned()]).await;
    // Alice's bucket is the 24th.
    let container = CreateMode::Container.with_acls(Acls::anyone_all());
    let mut expected = BTreeSet::from([Key::new("users", "alice").unwrap()]);
    for number in 0.. {
        let name = number.to_string();
        if bucket("users", &name) != 0x24 {
            continue;
        }
        raw.create(&format!("{base}/24/users:{name}"), b"", &container).await.unwrap();
        expected.insert(Key::new("users", name).unwrap());
        if expected.len() > 2 * 100 + 10 {
            break;
        }
    }
    assert_eq!(listed_once(&engine, Some("users")).await, expected);
    // All but one are free.
    let mut listing = ylock.list();
    assert_eq!(listing.next().await.unwrap().expect("it is held").key.name(), "alice");
    assert!(listing.next().await.unwrap().is_none());
    drop(guards);
    remove(ylock, engine, &base).await;
}

/// Removes a base that only one test has used, with all that is in it.
async fn remove(ylock: Ylock, engine: ZookeeperEngine, base: &str) {
    ylock.close().await;
    engine.close().await.expect("it is closed");
    let raw = server::raw(&Servers::One.hosts()).await;
    let (mut paths, mut next) = (vec![base.to_owned()], 0);
    while let Some(path) = paths.get(next).cloned() {
        let children = raw.list_children(&path).await.unwrap_or_default();
        paths.extend(children.iter().map(|child| format!("{path}/{child}")));
        next += 1;
    }
    for path in paths.iter().rev() {
        // The server may have removed it before: it is a container.
        let _ = raw.delete(path, None).await;
    }
}

/// As `algorithm::place` has it.
fn bucket(group: &str, name: &str) -> u128 {
    let bytes = group.bytes().chain([0xff]).chain(name.bytes());
    let hash = bytes.fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, |hash: u128, byte| {
        (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
    });
    hash % 256
}

#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn what_is_no_lock_is_not_named() {
    let base = format!("{}-{}", server::BASE, Owner::new());
    let (ylock, engine) = client(&base).await;
    let guards = held(&ylock, "users", ["alice".to_owned()]).await;
    let raw = server::raw(&Servers::One.hosts()).await;
    let stays = CreateMode::Persistent.with_acls(Acls::anyone_all());
    for (odd, content) in [
        ("users", ""),
        ("users:%zz", ""),
        ("users:bob", ""),
        ("users:%61lice", ""),
        ("#00", "5:usersalice"),
        ("#01", "?"),
    ] {
        raw.create(&format!("{base}/24/{odd}"), content.as_bytes(), &stays).await.unwrap();
    }
    let alice = BTreeSet::from([Key::new("users", "alice").unwrap()]);
    assert_eq!(listed_once(&engine, None).await, alice, "bob's bucket is another one");
    assert_eq!(listed_once(&engine, Some("users")).await, alice);
    drop(guards);
    remove(ylock, engine, &base).await;
}

#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn what_no_page_has_said_is_an_error() {
    let (_, engine) = client(server::BASE).await;
    for wrong in ["", "24", "users:alice", "100 ", "FF "] {
        let error = engine.keys(None, Some(wrong)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{wrong:?}");
    }
}
