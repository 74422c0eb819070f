//! Layers: what they see, in which order, and what they refuse.

#![allow(clippy::disallowed_methods, reason = "a test starts tasks of its own")]

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use ylock_core::layer::{Acquisition, End, Outcome};
use ylock_core::{Error, ErrorKind, Layer, LossReason, MemoryStore, Owner, Result, Unlocked, Ylock};
use ylock_testkit::{eventually, poll_once};

const SOON: Duration = Duration::from_secs(5);

/// Notes everything it is told.
#[derive(Clone, Debug)]
struct Diary {
    name: &'static str,
    pages: Arc<Mutex<Vec<String>>>,
}

impl Diary {
    fn new() -> Self {
        Self { name: "", pages: Arc::default() }
    }

    /// Another layer that writes into the same diary.
    fn named(&self, name: &'static str) -> Self {
        Self { name, ..self.clone() }
    }

    fn write(&self, what: String) {
        self.pages.lock().push(format!("{}{what}", self.name));
    }

    fn read(&self) -> Vec<String> {
        std::mem::take(&mut self.pages.lock())
    }
}

impl Layer for Diary {
    fn acquiring(&self, acquisition: &Acquisition) -> Result<()> {
        self.write(format!("acquiring {} {}", acquisition.mode, acquisition.key.name()));
        Ok(())
    }

    fn acquired(&self, acquisition: &Acquisition, outcome: &Outcome, _waited: Duration) {
        let outcome = match outcome {
            Outcome::Granted { .. } => "granted".to_owned(),
            Outcome::Reentered => "granted again".to_owned(),
            Outcome::NotFree => "not free".to_owned(),
            Outcome::Cancelled => "cancelled".to_owned(),
            Outcome::Failed(error) => format!("failed {:?}", error.kind()),
            other => format!("{other:?}"),
        };
        self.write(format!("{outcome} {} {}", acquisition.mode, acquisition.key.name()));
    }

    fn ended(&self, acquisition: &Acquisition, end: End, _held: Duration) {
        let end = match end {
            End::Released => "released".to_owned(),
            End::Lost(reason) => format!("lost {}", reason.as_str()),
            other => format!("{other:?}"),
        };
        self.write(format!("{end} {} {}", acquisition.mode, acquisition.key.name()));
    }
}

/// Refuses one name.
#[derive(Debug)]
struct Refuses(&'static str);

impl Layer for Refuses {
    fn acquiring(&self, acquisition: &Acquisition) -> Result<()> {
        if acquisition.key.name() == self.0 {
            return Err(Error::new(ErrorKind::Refused, "not this one"));
        }
        Ok(())
    }
}

#[tokio::test]
async fn a_layer_sees_the_beginning_the_outcome_and_the_end() {
    let diary = Diary::new();
    let locks = Ylock::in_memory().layer(diary.clone()).locks("group");
    let guard = locks.write("a").await.unwrap();
    assert!(locks.read("a").now().await.unwrap().is_none());
    assert_eq!(guard.unlock().await.unwrap(), Unlocked::Released);
    drop(locks.read("b").await.unwrap());
    assert_eq!(
        diary.read(),
        [
            "acquiring write a",
            "granted write a",
            "acquiring read a",
            "not free read a",
            "released write a",
            "acquiring read b",
            "granted read b",
            "released read b",
        ]
    );
}

#[tokio::test]
async fn each_reentrant_acquisition_has_its_own_outcome_and_end() {
    let diary = Diary::new();
    let owner = Owner::new();
    let locks = Ylock::in_memory().layer(diary.clone()).locks("group").owned_by(&owner);
    let (outer, inner) = (locks.write("a").await.unwrap(), locks.read("a").await.unwrap());
    drop(outer);
    assert_eq!(locks.write("a").await.unwrap_err().kind(), ErrorKind::WouldDeadlock);
    drop(inner);
    assert_eq!(
        diary.read(),
        [
            "acquiring write a",
            "granted write a",
            "acquiring read a",
            "granted again read a",
            "released write a",
            "acquiring write a",
            "failed WouldDeadlock write a",
            "released read a",
        ]
    );
}

#[tokio::test]
async fn layers_are_called_from_outside_in_and_back() {
    let diary = Diary::new();
    let ylock = Ylock::in_memory().layer(diary.named("outer ")).layer(diary.named("inner "));
    drop(ylock.lock("group", "a").write().await.unwrap());
    assert_eq!(
        diary.read(),
        [
            "outer acquiring write a",
            "inner acquiring write a",
            "inner granted write a",
            "outer granted write a",
            "inner released write a",
            "outer released write a",
        ]
    );
}

#[tokio::test]
async fn a_refusal_reaches_the_caller_and_the_layers_outside_but_not_those_inside() {
    let diary = Diary::new();
    let ylock =
        Ylock::in_memory().layer(diary.named("outer ")).layer(Refuses("a")).layer(diary.named("inner "));
    let locks = ylock.locks("group");
    for error in [locks.write("a").await.unwrap_err(), locks.write("a").run(|_| async {}).await.unwrap_err()]
    {
        assert_eq!(error.kind(), ErrorKind::Refused);
    }
    assert_eq!(ylock.keys_in_use(), 0, "nothing reaches the keeper");
    assert_eq!(diary.read(), ["outer acquiring write a", "outer failed Refused write a"].repeat(2));
    drop(locks.write("b").await.unwrap());
}

#[tokio::test]
async fn a_layer_is_told_of_a_caller_that_stops_waiting() {
    let diary = Diary::new();
    let locks = Ylock::in_memory().layer(diary.clone()).locks("group");
    let guard = locks.write("a").await.unwrap();
    let mut waiting = Box::pin(locks.read("a"));
    assert!(poll_once(waiting.as_mut()).await.is_none());
    drop(waiting);
    drop(guard);
    assert_eq!(
        diary.read(),
        ["acquiring write a", "granted write a", "acquiring read a", "cancelled read a", "released write a"]
    );
}

#[tokio::test]
async fn a_future_that_is_never_polled_is_not_an_acquisition() {
    let diary = Diary::new();
    let locks = Ylock::in_memory().layer(diary.clone()).locks("group");
    drop(locks.write("a"));
    assert!(diary.read().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_layer_is_told_why_a_lock_was_lost() {
    let diary = Diary::new();
    let store = MemoryStore::new();
    let ylock = Ylock::new(store.engine()).layer(diary.clone());
    let locks = ylock.locks("group");
    let guard = locks.write("a").await.unwrap();
    Ylock::new(store.engine()).revoke("group", "a").await.unwrap();
    eventually(SOON, "it is lost", || async { guard.loss() == Some(LossReason::Revoked) }).await;
    drop(guard);
    let guard = locks.write("b").await.unwrap();
    ylock.close().await;
    assert_eq!(guard.unlock().await.unwrap(), Unlocked::WasLost);
    assert_eq!(locks.write("c").await.unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(
        diary.read(),
        [
            "acquiring write a",
            "granted write a",
            "lost revoked write a",
            "acquiring write b",
            "granted write b",
            "lost closed write b",
            "acquiring write c",
            "failed Closed write c",
        ]
    );
}

#[tokio::test]
async fn the_end_of_a_downgraded_lock_is_that_of_a_reader() {
    let diary = Diary::new();
    let locks = Ylock::in_memory().layer(diary.clone()).locks("group");
    drop(locks.write("a").await.unwrap().downgrade().await.unwrap());
    assert_eq!(diary.read(), ["acquiring write a", "granted write a", "released read a"]);
}

#[tokio::test]
async fn a_layer_may_use_the_locks_itself() {
    #[derive(Debug)]
    struct Counts(Ylock);
    impl Layer for Counts {
        fn ended(&self, _: &Acquisition, _: End, _: Duration) {
            // Locks the same shards that the keeper uses: it must not hold them now.
            assert!(self.0.keys_in_use() <= 1);
            let lock = self.0.lock("group", "a");
            drop(tokio::spawn(async move { drop(lock.write().now().await) }));
        }
    }
    let plain = Ylock::in_memory();
    let watched = plain.layer(Counts(plain.clone()));
    for _ in 0..10 {
        drop(watched.lock("group", "a").write().await.unwrap());
    }
    eventually(SOON, "all is given back", || async { plain.keys_in_use() == 0 }).await;
}
