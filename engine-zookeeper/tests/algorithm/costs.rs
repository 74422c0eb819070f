//! How many requests an acquisition takes. More would break no lock, so nothing else notices.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use ylock_core::Mode;
use ylock_core::engine::{Engine, Grant, Patience};
use ylock_engine_zookeeper::ZookeeperEngine;

use crate::fixture::{Fixture, renew};

/// What a client sends to keep its session, whatever it acquires.
const OF_THE_SESSION: [&str; 2] = ["check", "count"];

/// Returns the requests of acquisitions and releases since the last call.
fn sent(fixture: &Fixture) -> Vec<&'static str> {
    let all = fixture.fake.sent().into_iter();
    all.filter(|request| !OF_THE_SESSION.contains(request)).collect()
}

/// Returns the holder with its grant, and the waiter once it has looked and sends nothing more.
async fn one_holds_and_another_waits(
    fixture: &Fixture,
) -> (Arc<ZookeeperEngine>, Grant, JoinHandle<Option<Grant>>) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    let grant = here.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    let waits = fixture.acquiring(&there, Mode::Write);
    fixture.until_contenders(2).await;
    // Paused time: all that is ready happens first.
    tokio::time::sleep(Duration::from_secs(1)).await;
    sent(fixture);
    (here, grant, waits)
}

#[tokio::test(start_paused = true)]
async fn a_try_at_a_held_lock_only_looks() {
    let fixture = Fixture::new();
    let (here, there) = (fixture.client().await, fixture.client().await);
    here.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    sent(&fixture);
    let request = fixture.request(Mode::Write).with_patience(Patience::Try);
    assert!(there.acquire(&request).await.unwrap().is_none());
    assert_eq!(sent(&fixture), ["sync", "list"]);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_is_told_and_seldom_asks() {
    let fixture = Fixture::new();
    let (here, grant, waits) = one_holds_and_another_waits(&fixture).await;
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_secs(3)).await;
        renew(&here, &grant).await.unwrap();
    }
    let sent = sent(&fixture);
    // Three looks in a minute, by each of which the waiter reads the list and the node before its own.
    let reads = sent.iter().filter(|request| **request != "sync").count();
    assert!(!waits.is_finished() && (2..=8).contains(&reads), "{sent:?}");
    assert!(!sent.contains(&"token"), "it knows its token: {sent:?}");
    waits.abort();
}

#[tokio::test(start_paused = true)]
async fn the_first_waiter_enters_when_it_is_told_without_another_look() {
    let fixture = Fixture::new();
    let (here, grant, waits) = one_holds_and_another_waits(&fixture).await;
    here.release(&grant.key, grant.id, None).await.unwrap();
    fixture.granted(waits).await;
    let sent = sent(&fixture);
    assert!(!sent.iter().any(|request| request.starts_with("list") || *request == "token"), "{sent:?}");
}

/// It was alone at its last look, and knows that others come to this lock.
#[tokio::test(start_paused = true)]
async fn a_holder_of_a_busy_lock_removes_its_own_node_and_does_not_try_to_remove_the_locks() {
    let fixture = Fixture::new();
    let (first, second, third) = (fixture.client().await, fixture.client().await, fixture.client().await);
    let held = first.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    let waits = fixture.acquiring(&second, Mode::Write);
    fixture.until_contenders(2).await;
    let waits_longer = fixture.acquiring(&third, Mode::Write);
    fixture.until_contenders(3).await;
    first.release(&held.key, held.id, None).await.unwrap();
    let held = fixture.granted(waits).await;
    second.release(&held.key, held.id, None).await.unwrap();
    let held = fixture.granted(waits_longer).await;
    let waits = fixture.acquiring(&first, Mode::Write);
    fixture.until_contenders(2).await;
    tokio::time::sleep(Duration::from_millis(10)).await;
    sent(&fixture);
    third.release(&held.key, held.id, None).await.unwrap();
    assert_eq!(sent(&fixture), ["remove"]);
    fixture.granted(waits).await;
}
