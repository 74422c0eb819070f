//! What is measured is what happened.

#![allow(clippy::disallowed_methods, reason = "a test starts tasks of its own")]

mod common;

use std::time::Duration;

use common::Scraped;
use ylock_core::layer::Acquisition;
use ylock_core::{Error, ErrorKind, Layer, LossReason, MemoryStore, Options, Owner, Result, Ylock};
use ylock_metrics::catalogue::{ACQUISITION_OUTCOMES, ALL, Kind, series_of_a_group};
use ylock_testkit::{eventually, poll_once};

const SOON: Duration = Duration::from_secs(5);
const ACQUISITIONS: &str = "ylock_acquisitions_total";

fn outcome(scraped: &Scraped, word: &str) -> f64 {
    scraped.get(ACQUISITIONS, &[("group", "g"), ("outcome", word)])
}

#[tokio::test]
async fn every_outcome_has_its_own_count() {
    #[derive(Debug)]
    struct Refuses;
    impl Layer for Refuses {
        fn acquiring(&self, acquisition: &Acquisition) -> Result<()> {
            match acquisition.key.name() {
                "closed" => Err(Error::new(ErrorKind::Refused, "closed")),
                _ => Ok(()),
            }
        }
    }
    let scraped = Scraped::new();
    let ylock = Ylock::in_memory().layer(scraped.layer.clone()).layer(Refuses);
    let locks = ylock.locks("g");
    let held = locks.write("a").await.unwrap();
    assert!(locks.write("a").now().await.unwrap().is_none());
    assert!(locks.write("a").within(Duration::ZERO).await.unwrap().is_none());
    assert!(locks.write("a").within(Duration::from_millis(1)).await.unwrap().is_none());
    let limited = locks.with_options(Options::default().with_max_wait(Duration::from_millis(1)));
    assert_eq!(limited.write("a").await.unwrap_err().kind(), ErrorKind::TimedOut);
    let mut cancelled = Box::pin(locks.write("a"));
    assert!(poll_once(cancelled.as_mut()).await.is_none());
    drop(cancelled);
    assert_eq!(locks.write("closed").await.unwrap_err().kind(), ErrorKind::Refused);
    let mut waits = Box::pin(locks.write("a"));
    assert!(poll_once(waits.as_mut()).await.is_none());
    drop(held);
    drop(waits.await.unwrap());
    let reader = Owner::new();
    let mine = locks.owned_by(&reader);
    let read = mine.read("b").await.unwrap();
    assert_eq!(mine.write("b").await.unwrap_err().kind(), ErrorKind::WouldDeadlock);
    drop(read);
    let counts = ACQUISITION_OUTCOMES.iter().map(|word| (*word, outcome(&scraped, word))).collect::<Vec<_>>();
    assert_eq!(
        counts,
        [
            ("at_once", 2.0),
            ("after_waiting", 1.0),
            ("not_free", 2.0),
            ("timed_out", 2.0),
            ("refused", 1.0),
            ("cancelled", 1.0),
            ("failed", 1.0)
        ]
    );
    for error in ["refused", "would_deadlock"] {
        assert_eq!(scraped.get("ylock_acquisition_errors_total", &[("error", error)]), 1.0);
    }
    assert_eq!(scraped.get("ylock_wait_seconds_count", &[("granted", "yes"), ("group", "g")]), 3.0);
    assert_eq!(scraped.get("ylock_wait_seconds_count", &[("granted", "no"), ("group", "g")]), 7.0);
    assert_eq!(scraped.get("ylock_hold_seconds_count", &[("group", "g")]), 3.0);
}

#[tokio::test(start_paused = true)]
async fn a_reentrant_hold_is_counted_once_and_lasts_from_first_to_last() {
    let scraped = Scraped::new();
    let ylock = Ylock::in_memory().layer(scraped.layer.clone());
    let owner = Owner::new();
    let locks = ylock.locks("g").owned_by(&owner);
    let first = locks.write("a").await.unwrap();
    tokio::time::advance(Duration::from_secs(1)).await;
    let second = locks.write("a").await.unwrap();
    let third = locks.read("a").await.unwrap();
    drop(first);
    tokio::time::advance(Duration::from_secs(2)).await;
    assert_eq!(scraped.get("ylock_held", &[("group", "g"), ("mode", "write")]), 1.0);
    drop((second, third));
    assert_eq!(scraped.get("ylock_hold_seconds_count", &[("group", "g")]), 1.0);
    assert!((scraped.get("ylock_hold_seconds_sum", &[("group", "g")]) - 3.0).abs() < 0.1);
    assert_eq!(scraped.get("ylock_reentries_total", &[("group", "g")]), 2.0);
    assert_eq!(outcome(&scraped, "at_once"), 1.0);
    assert_eq!(scraped.get("ylock_wait_seconds_count", &[("group", "g")]), 1.0);
}

#[tokio::test]
async fn a_loss_is_counted_by_its_reason_when_it_happens() {
    let scraped = Scraped::new();
    let store = MemoryStore::new();
    let options = Options::default().with_lease(Duration::from_millis(300));
    let ylock = Ylock::new(store.engine()).with_options(options).layer(scraped.layer.clone());
    let guard = ylock.lock("g", "a").write().await.unwrap();
    Ylock::new(store.engine()).revoke("g", "a").await.unwrap();
    eventually(SOON, "it is lost", || async { guard.loss() == Some(LossReason::Revoked) }).await;
    assert_eq!(scraped.get("ylock_losses_total", &[("reason", "revoked")]), 1.0);
    assert_eq!(scraped.get("ylock_losses_total", &[("group", "g")]), 1.0);
    assert_eq!(scraped.get("ylock_hold_seconds_count", &[("group", "g")]), 1.0);
    drop(guard);
    assert_eq!(scraped.get("ylock_hold_seconds_count", &[("group", "g")]), 1.0);
}

#[tokio::test]
async fn renewals_releases_and_hand_overs_are_counted() {
    let scraped = Scraped::new();
    let options = Options::default().with_lease(Duration::from_millis(900));
    let ylock = Ylock::in_memory().with_options(options).layer(scraped.layer.clone());
    let lock = ylock.lock("g", "a");
    let first = lock.write().await.unwrap();
    let mut second = Box::pin(lock.write());
    assert!(poll_once(second.as_mut()).await.is_none());
    drop(first);
    let second = second.await.unwrap();
    eventually(SOON, "it is renewed", || async {
        scraped.get("ylock_renewals_total", &[("group", "g"), ("outcome", "renewed")]) >= 2.0
    })
    .await;
    assert!(scraped.get("ylock_renewal_lag_seconds_count", &[]) >= 2.0);
    assert!(second.unlock().await.unwrap().is_released());
    assert_eq!(scraped.get("ylock_hand_overs_total", &[("group", "g")]), 1.0);
    assert_eq!(scraped.get("ylock_release_seconds_count", &[("group", "g")]), 1.0);
}

#[tokio::test]
async fn gauges_go_back_to_zero_and_stay() {
    let scraped = Scraped::new();
    let ylock = Ylock::in_memory().layer(scraped.layer.clone());
    let lock = ylock.lock("g", "a");
    let (held, mut waits) = (lock.read().await.unwrap(), Box::pin(lock.write()));
    assert!(poll_once(waits.as_mut()).await.is_none());
    let in_use = || {
        ["ylock_held", "ylock_waiting", "ylock_longest_hold_seconds", "ylock_longest_wait_seconds"]
            .map(|name| scraped.get(name, &[("group", "g")]))
    };
    assert_eq!(in_use()[..2], [1.0, 1.0]);
    assert!(in_use().iter().all(|value| *value > 0.0));
    drop((held, waits));
    assert_eq!(in_use(), [0.0; 4]);
    assert_eq!(scraped.get("ylock_clients", &[("engine", "memory")]), 1.0);
    drop((lock, ylock));
    // Its last release holds it for a moment longer.
    eventually(SOON, "the client is gone", || async {
        scraped.get("ylock_clients", &[("engine", "memory")]) == 0.0
    })
    .await;
    assert_eq!(in_use(), [0.0; 4]);
}

#[tokio::test]
async fn a_closed_client_holds_nothing() {
    let scraped = Scraped::new();
    let ylock = Ylock::in_memory().layer(scraped.layer.clone());
    let guard = ylock.lock("g", "a").write().await.unwrap();
    ylock.close().await;
    assert_eq!(ylock.lock("g", "a").write().await.unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(scraped.get("ylock_held", &[("group", "g")]), 0.0);
    assert_eq!(scraped.get("ylock_losses_total", &[("reason", "closed")]), 1.0);
    assert_eq!(scraped.get("ylock_acquisition_errors_total", &[("error", "closed")]), 1.0);
    drop(guard);
}

#[tokio::test]
async fn clients_of_one_layer_add_up() {
    let scraped = Scraped::new();
    let clients = [(); 3].map(|()| Ylock::in_memory().layer(scraped.layer.clone()));
    // The same client again is the same client.
    let _again = clients[0].layer(scraped.layer.clone());
    let mut guards = Vec::new();
    for client in &clients {
        guards.push(client.lock("g", "a").write().await.unwrap());
    }
    assert_eq!(scraped.get("ylock_held", &[("group", "g")]), 3.0);
    assert_eq!(scraped.get("ylock_clients", &[]), 3.0);
    assert_eq!(outcome(&scraped, "at_once"), 3.0);
}

#[tokio::test]
async fn a_client_is_told_by_its_name_as_long_as_it_lives() {
    let scraped = Scraped::new();
    let ylock = Ylock::in_memory().with_name("billing 2").unwrap().layer(scraped.layer.clone());
    let told = |name| scraped.get("ylock_client_info", &[("engine", "memory"), ("client", name)]);
    assert_eq!(told("billing 2"), 1.0);
    let ylock = ylock.with_name("billing 3").unwrap();
    assert_eq!([told("billing 2"), told("billing 3")], [0.0, 1.0]);
    drop(ylock);
    assert_eq!(told("billing 3"), 0.0);
}

#[tokio::test]
async fn all_series_of_a_group_are_there_from_the_beginning() {
    let scraped = Scraped::new();
    let ylock = Ylock::in_memory().layer(scraped.layer.clone());
    drop(ylock.lock("g", "a").write().await.unwrap());
    for word in ACQUISITION_OUTCOMES {
        for mode in ["read", "write"] {
            assert!(
                scraped.find(ACQUISITIONS, &[("group", "g"), ("outcome", word), ("mode", mode)]).is_some()
            );
        }
    }
    for reason in LossReason::ALL {
        assert_eq!(scraped.get("ylock_losses_total", &[("group", "g"), ("reason", reason.as_str())]), 0.0);
    }
    for kind in ErrorKind::ALL {
        let error = ("error", kind.as_str());
        assert_eq!(scraped.get("ylock_acquisition_errors_total", &[("group", "g"), error]), 0.0);
    }
    let text = scraped.text();
    assert_eq!(text.lines().filter(|line| line.contains("group=\"g\"")).count(), series_of_a_group());
    for metric in ALL {
        // The series of a store's operations are made when they come.
        let later = metric.name.contains("store_request");
        assert_eq!(text.contains(&format!("# TYPE {} ", metric.name)), !later, "{}", metric.name);
        if let (Kind::Histogram(_), false) = (metric.kind, later) {
            assert!(
                text.contains(&format!("# TYPE {} histogram", metric.name)),
                "{} became a summary",
                metric.name
            );
        }
    }
}
