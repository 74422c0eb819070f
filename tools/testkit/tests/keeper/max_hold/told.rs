//! What log and layers are told of a hold that has lasted too long.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use ylock_core::layer::{Acquisition, ClientEvent, End, Event};
use ylock_core::{Layer, LossReason};
use ylock_testkit::{Log, eventually};

use super::{LONGEST, SOON, clients, granted, lock};

/// The ends of guards, as a layer is told of them.
#[derive(Clone, Debug, Default)]
struct Ends(Arc<Mutex<Vec<End>>>);

impl Layer for Ends {
    fn ended(&self, _: &Acquisition, end: End, _: Duration) {
        self.0.lock().push(end);
    }
}

#[tokio::test(start_paused = true)]
async fn its_end_is_told_once_with_its_reason_and_that_of_its_guard() {
    let ((here, there), of_guards) = (clients(), Ends::default());
    let here = here.layer(of_guards.clone());
    let mut events = here.events();
    let guard = granted(lock(&here).write()).await;
    // The next holder gets in after the end was decided.
    drop(lock(&there).write().await.unwrap());
    eventually(SOON, "all is told", || async { here.keys_in_use() == 0 }).await;
    drop(guard);
    let of_hold = |event| match event {
        Event::ClientEvent(ClientEvent::HoldEnded { end, held, .. }) => Some((end, held.as_secs())),
        _ => None,
    };
    let of_holds: Vec<_> = std::iter::from_fn(|| events.try_next()).filter_map(of_hold).collect();
    let too_long = End::Lost(LossReason::HeldTooLong);
    assert_eq!(of_holds, [(too_long, LONGEST.as_secs())]);
    assert_eq!(*of_guards.0.lock(), [too_long]);
}

#[tokio::test(start_paused = true)]
async fn the_warning_names_the_holder_how_long_it_held_and_the_bound() {
    let (log, _guard) = Log::of(tracing::Level::WARN);
    let (here, there) = clients();
    let guard = granted(lock(&here).write()).await;
    drop(lock(&there).write().await.unwrap());
    let warned = log.lines(&["WARN", "a lock was lost"]);
    assert_eq!(warned.len(), 1, "{warned:?}");
    let (owner, token) =
        (format!("owners=\"{}\"", guard.owner()), format!("tokens=\"{}\"", guard.token().unwrap()));
    for part in [&*owner, &token, "reason=\"held_too_long\"", "held=60", "max_hold=60s"] {
        assert!(warned[0].contains(part), "no {part} in {warned:?}");
    }
}
