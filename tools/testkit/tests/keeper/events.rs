//! What a client tells of itself: to layers and to a stream of events.

#![allow(clippy::disallowed_methods, reason = "a test starts tasks of its own")]

use std::time::Duration;

use ylock_core::layer::{Acquisition, ClientEvent, ClientView, End, Event, Events, Outcome};
use ylock_core::{ErrorKind, Layer, LossReason, MemoryStore, Mode, Owner, Result, Ylock};
use ylock_testkit::{eventually, poll_once};

const SOON: Duration = Duration::from_secs(5);

/// All that has been told by now, in words.
fn heard(events: &mut Events) -> Vec<String> {
    std::iter::from_fn(|| events.try_next()).filter_map(|event| words(&event)).collect()
}

fn words(event: &Event) -> Option<String> {
    match event {
        Event::Acquired { acquisition, outcome, .. } => {
            let outcome = match outcome {
                Outcome::Granted { waited: false } => "at once",
                Outcome::Granted { waited: true } => "after waiting",
                Outcome::Reentered => "again",
                Outcome::NotFree => "not free",
                _ => "otherwise",
            };
            Some(format!("{} {} {outcome}", acquisition.mode, acquisition.key.name()))
        }
        Event::ClientEvent(ClientEvent::HoldEnded { key, mode, end, .. }) => {
            let end = match end {
                End::Lost(reason) => format!("lost {}", reason.as_str()),
                _ => "released".to_owned(),
            };
            Some(format!("{mode} {} {end}", key.name()))
        }
        Event::ClientEvent(ClientEvent::HandedOver { key }) => Some(format!("{} handed over", key.name())),
        Event::Dropped(count) => Some(format!("{count} dropped")),
        _ => None,
    }
}

#[tokio::test]
async fn it_is_told_who_had_to_wait() {
    let store = MemoryStore::new();
    let (here, there) = (Ylock::new(store.engine()), Ylock::new(store.engine()));
    let mut events = there.events();
    let first = here.lock("group", "a").write().await.unwrap();
    let waiting = there.lock("group", "a");
    let mut waiting = Box::pin(waiting.write());
    assert!(poll_once(waiting.as_mut()).await.is_none());
    eventually(SOON, "it waits in the store", || async {
        here.inspect("group", "a").await.unwrap().queue.len() == 1
    })
    .await;
    drop(first);
    drop(waiting.await.unwrap());
    drop(there.lock("group", "b").write().await.unwrap());
    // No other owner was there, only its own release may still have been on its way.
    drop(there.lock("group", "b").write().await.unwrap());
    assert_eq!(
        heard(&mut events),
        [
            "write a after waiting",
            "write a released",
            "write b at once",
            "write b released",
            "write b at once",
            "write b released"
        ]
    );
}

#[tokio::test]
async fn a_hand_over_is_told_and_whoever_got_it_had_to_wait() {
    let ylock = Ylock::in_memory();
    let mut events = ylock.events();
    let lock = ylock.lock("group", "a");
    let first = lock.write().await.unwrap();
    let mut second = Box::pin(lock.write());
    assert!(poll_once(second.as_mut()).await.is_none());
    assert_eq!(ylock.usage()[0].waiting_write, 1);
    drop(first);
    let second = second.await.unwrap();
    assert_eq!(
        heard(&mut events),
        ["write a at once", "write a released", "a handed over", "write a after waiting"]
    );
    drop(second);
}

/// And not for as long as the process has had the lock.
#[tokio::test(start_paused = true)]
async fn a_hold_that_was_handed_on_is_told_for_as_long_as_it_was_held() {
    let ylock = Ylock::in_memory();
    let mut events = ylock.events();
    let lock = ylock.lock("group", "a");
    let first = lock.write().await.unwrap();
    let mut next = Box::pin(lock.write());
    assert!(poll_once(next.as_mut()).await.is_none());
    tokio::time::sleep(Duration::from_millis(20)).await;
    drop(first);
    let next = next.await.unwrap();
    tokio::time::sleep(Duration::from_millis(10)).await;
    drop(next);
    let lengths = std::iter::from_fn(|| events.try_next()).filter_map(|event| match event {
        Event::ClientEvent(ClientEvent::HoldEnded { held, .. }) => Some(held.as_millis()),
        _ => None,
    });
    assert_eq!(lengths.collect::<Vec<_>>(), [20, 10]);
}

#[tokio::test]
async fn a_hold_ends_once_with_the_last_of_its_acquisitions() {
    let ylock = Ylock::in_memory();
    let mut events = ylock.events();
    let owner = Owner::new();
    let locks = ylock.locks("group").owned_by(&owner);
    let outer = locks.write("a").await.unwrap();
    let inner = locks.read("a").await.unwrap();
    drop(outer);
    assert_eq!(ylock.usage()[0].held(), 1);
    drop(inner);
    assert_eq!(heard(&mut events), ["write a at once", "read a again", "read a released"]);
}

#[tokio::test(start_paused = true)]
async fn a_loss_is_told_when_it_happens_and_not_when_the_guard_is_dropped() {
    let store = MemoryStore::new();
    let ylock = Ylock::new(store.engine());
    let mut events = ylock.events();
    let guard = ylock.lock("group", "a").write().await.unwrap();
    Ylock::new(store.engine()).revoke("group", "a").await.unwrap();
    eventually(SOON, "it is lost", || async { guard.loss() == Some(LossReason::Revoked) }).await;
    assert_eq!(heard(&mut events), ["write a at once", "write a lost revoked"]);
    drop(guard);
    assert!(heard(&mut events).is_empty(), "an end is told once");
}

#[tokio::test]
async fn a_slow_reader_is_told_how_much_it_missed_and_locks_do_not_wait_for_it() {
    let ylock = Ylock::in_memory();
    let mut events = ylock.events();
    let lock = ylock.lock("group", "a");
    for _ in 0..Events::KEPT {
        assert!(lock.write().now().await.unwrap().is_some());
    }
    let Some(Event::Dropped(missed)) = events.try_next() else { panic!("nothing was dropped") };
    let mut seen = 0;
    while events.try_next().is_some() {
        seen += 1;
    }
    assert_eq!(seen, Events::KEPT);
    assert!(missed >= Events::KEPT as u64, "{missed}");
}

#[tokio::test]
async fn the_stream_ends_with_the_client() {
    let ylock = Ylock::in_memory();
    let mut events = ylock.events();
    drop(ylock);
    assert!(tokio::time::timeout(SOON, events.next()).await.unwrap().is_none());
}

#[tokio::test]
async fn a_client_that_is_closed_tells_what_it_lost_and_has_nothing_in_use() {
    let ylock = Ylock::in_memory();
    let mut events = ylock.events();
    let guard = ylock.lock("group", "a").write().await.unwrap();
    ylock.close().await;
    assert_eq!(heard(&mut events), ["write a at once", "write a lost closed"]);
    assert!(ylock.usage().is_empty());
    drop(guard);
}

#[tokio::test]
async fn usage_counts_owners_and_waiters_by_group() {
    let ylock = Ylock::in_memory();
    let reads = [ylock.lock("b", "x").read().await.unwrap(), ylock.lock("b", "x").read().await.unwrap()];
    let write = ylock.lock("a", "x").write().await.unwrap();
    let lock = ylock.lock("a", "x");
    let mut waits = Box::pin(lock.read());
    assert!(poll_once(waits.as_mut()).await.is_none());
    let usage = ylock.usage();
    let counts: Vec<_> = usage
        .iter()
        .map(|group| {
            (&*group.group, group.held_read, group.held_write, group.waiting_read, group.waiting_write)
        })
        .collect();
    assert_eq!(counts, [("a", 0, 1, 1, 0), ("b", 2, 0, 0, 0)]);
    drop((reads, write, waits));
}

#[tokio::test(start_paused = true)]
async fn usage_tells_how_long_the_oldest_holds_and_waits() {
    let ylock = Ylock::in_memory();
    let lock = ylock.lock("group", "a");
    let guard = lock.write().await.unwrap();
    tokio::time::advance(Duration::from_secs(2)).await;
    let mut waits = Box::pin(lock.write());
    assert!(poll_once(waits.as_mut()).await.is_none());
    tokio::time::advance(Duration::from_secs(3)).await;
    let usage = &ylock.usage()[0];
    assert_eq!((usage.longest_hold, usage.longest_wait), (Duration::from_secs(5), Duration::from_secs(3)));
    drop((guard, waits));
}

/// Panics wherever it is told to.
#[derive(Debug)]
struct Panics(&'static str);

impl Panics {
    fn at(&self, place: &str) {
        assert!(self.0 != place, "a layer that is wrong");
    }
}

impl Layer for Panics {
    fn attached(&self, _: &ClientView) {
        self.at("attached");
    }
    fn acquiring(&self, _: &Acquisition) -> Result<()> {
        self.at("acquiring");
        Ok(())
    }
    fn acquired(&self, _: &Acquisition, _: &Outcome, _: Duration) {
        self.at("acquired");
    }
    fn ended(&self, _: &Acquisition, _: End, _: Duration) {
        self.at("ended");
    }
    fn client_event(&self, _: &ClientView, _: &ClientEvent) {
        self.at("client_event");
    }
}

#[tokio::test]
async fn a_layer_that_panics_does_not_keep_the_lock() {
    for place in ["attached", "acquired", "ended", "client_event"] {
        let ylock = Ylock::in_memory();
        let watched = ylock.layer(Panics(place));
        for _ in 0..2 {
            let guard = watched.lock("group", "a").write().await.unwrap();
            assert_eq!(guard.mode(), Mode::Write);
            assert!(guard.unlock().await.unwrap().is_released());
        }
        eventually(SOON, "all is given back", || async { ylock.keys_in_use() == 0 }).await;
    }
}

#[tokio::test]
async fn a_layer_that_panics_when_it_is_asked_has_not_agreed() {
    let ylock = Ylock::in_memory().layer(Panics("acquiring"));
    let error = ylock.lock("group", "a").write().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unexpected);
    assert!(error.to_string().contains("layer"), "{error}");
    assert_eq!(ylock.keys_in_use(), 0);
}

#[tokio::test]
async fn a_layer_that_is_gone_is_not_kept_by_the_client() {
    #[derive(Debug)]
    struct Watches(#[allow(dead_code, reason = "its count is looked at")] std::sync::Arc<()>);
    impl Layer for Watches {}
    let (ylock, count) = (Ylock::in_memory(), std::sync::Arc::new(()));
    for _ in 0..100 {
        drop(ylock.layer(Watches(count.clone())));
    }
    assert_eq!(std::sync::Arc::strong_count(&count), 1);
}
