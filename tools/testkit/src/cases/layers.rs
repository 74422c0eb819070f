//! The events that layers are told of a client on a real store.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use ylock_core::layer::{Acquisition, ClientEvent, ClientView, End, Outcome, Renewed};
use ylock_core::{Layer, Lock, LossReason, Mode, Unlocked};

use crate::{Client, Fixture, eventually};

/// Remembers everything.
#[derive(Clone, Debug, Default)]
struct Witness(Arc<Mutex<Seen>>);

#[derive(Debug, Default)]
struct Seen {
    outcomes: Vec<Outcome>,
    events: Vec<ClientEvent>,
}

impl Witness {
    fn of(client: &Client) -> (Self, Lock) {
        let witness = Self::default();
        let key = client.key();
        let lock = client.layer(witness.clone()).lock(key.group(), key.name());
        (witness, lock)
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock()
    }

    /// Returns whether the last acquisition, which must be granted, had to wait.
    fn last_waited(&self) -> bool {
        match self.seen().outcomes.last() {
            Some(Outcome::Granted { waited }) => *waited,
            other => panic!("{other:?}"),
        }
    }

    fn count(&self, is_one: impl Fn(&ClientEvent) -> bool) -> usize {
        self.seen().events.iter().filter(|event| is_one(event)).count()
    }
}

impl Layer for Witness {
    fn acquired(&self, _: &Acquisition, outcome: &Outcome, _: Duration) {
        self.seen().outcomes.push(outcome.clone());
    }

    fn client_event(&self, _: &ClientView, event: &ClientEvent) {
        self.seen().events.push(event.clone());
    }
}

/// An acquisition that found the lock free was granted at once, and an acquisition that had to wait for another client waited.
pub async fn a_layer_is_told_who_had_to_wait(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    let (witness, lock) = Witness::of(&there);
    assert_eq!(lock.write().await.unwrap().unlock().await.unwrap(), Unlocked::Released);
    assert!(!witness.last_waited());
    // The queue shows a contender before it has looked whether it is alone. On a busy machine the other holder may be gone by then.
    for _ in 0..10 {
        let held = here.write().await;
        let lock = lock.clone();
        let waiting = tokio::spawn(async move { lock.write().await.unwrap().unlock().await.unwrap() });
        fixture.work().await;
        drop(held);
        assert_eq!(waiting.await.unwrap(), Unlocked::Released);
        if witness.last_waited() {
            return;
        }
    }
    panic!("it waited, and the layer was told that it did not");
}

/// A hold ends once, a lost hold with its reason, and also while its guard lives on.
pub async fn a_layer_is_told_of_the_end_of_each_hold_once(fixture: Fixture) {
    let client = fixture.short_lived().await;
    let (witness, lock) = Witness::of(&client);
    let ends = || witness.count(|event| matches!(event, ClientEvent::HoldEnded { .. }));
    assert!(lock.write().await.unwrap().unlock().await.unwrap().is_released());
    assert_eq!(ends(), 1);
    let guard = lock.write().await.unwrap();
    client.take_away().await;
    eventually(fixture.lapse(), "the holder knows", || async { guard.loss().is_some() }).await;
    eventually(fixture.soon(), "the layer is told", || async { ends() == 2 }).await;
    drop(guard);
    let revoked = End::Lost(LossReason::Revoked);
    let is_loss = |event: &ClientEvent| matches!(event, ClientEvent::HoldEnded { end, mode: Mode::Write, .. } if *end == revoked);
    assert_eq!((ends(), witness.count(is_loss)), (2, 1), "{:?}", witness.seen());
}

/// Renewals with their outcome, and releases when the store has confirmed them.
pub async fn a_layer_is_told_of_renewals_and_releases(fixture: Fixture) {
    let client = fixture.short_lived().await;
    let (witness, lock) = Witness::of(&client);
    let guard = lock.write().await.unwrap();
    let renewed =
        |event: &ClientEvent| matches!(event, ClientEvent::Renewed { outcome: Renewed::Renewed, .. });
    eventually(fixture.lapse(), "it is renewed", || async { witness.count(renewed) >= 2 }).await;
    assert!(witness.count(|event| matches!(event, ClientEvent::Renewing { .. })) >= 2);
    assert_eq!(guard.unlock().await.unwrap(), Unlocked::Released);
    let left =
        |event: &ClientEvent| matches!(event, ClientEvent::ReleaseEnded { held: true, confirmed: true, .. });
    assert_eq!(witness.count(left), 1);
}

/// Every request to the store is told, in one of a few words. The store in memory is asked nothing.
pub async fn a_layer_is_told_of_requests_to_the_store(fixture: Fixture) {
    let client = fixture.client().await;
    let (witness, lock) = Witness::of(&client);
    assert!(lock.write().await.unwrap().unlock().await.unwrap().is_released());
    let seen = witness.seen();
    let operations: BTreeSet<&str> = seen
        .events
        .iter()
        .filter_map(|event| match event {
            ClientEvent::Requested { operation, error: None, .. } => Some(*operation),
            ClientEvent::Requested { .. } => panic!("{event:?}"),
            _ => None,
        })
        .collect();
    assert_eq!(operations.is_empty(), client.engine_name() == "memory", "{operations:?}");
    assert!(
        operations.iter().all(|word| word.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_'))
    );
}
