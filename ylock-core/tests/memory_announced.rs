//! The in-memory store, and a waiter that stands behind a grant of its own client.

#![allow(clippy::disallowed_methods, reason = "a test stands outside: it looks at time")]

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use ylock_core::engine::{AcquisitionId, Engine, Holding, Release, Renewal, Request};
use ylock_core::{ClientName, Key, MemoryStore, Mode, Owner};

fn request(engine: &dyn Engine, mode: Mode) -> Request {
    Request::new(
        Key::new("group", "name").unwrap(),
        AcquisitionId::new(&*engine.environment()),
        mode,
        Owner::new(),
        ClientName::default(),
        Duration::from_secs(10),
    )
}

/// From the release on it stands on its own, and is not removed with the grant.
#[tokio::test(start_paused = true)]
async fn a_waiter_that_stood_behind_a_grant_keeps_its_place_when_the_release_takes_it_along() {
    let store = MemoryStore::new();
    let (here, there) = (Arc::new(store.engine()), Arc::new(store.engine()));
    let first = request(&*here, Mode::Read);
    let grant = here.acquire(&first).await.unwrap().unwrap();
    let next = request(&*here, Mode::Write);
    let holding = Holding::new(grant, next.clone());
    assert!(matches!(here.renew(&[holding]).await.remove(0).unwrap(), Renewal::Renewed { .. }));
    let later = request(&*there, Mode::Write);
    let mut waits = there.acquire(&later);
    assert!((&mut waits).now_or_never().is_none());
    assert_eq!(here.release(&first.key, first.id, Some(&next)).await.unwrap(), Release::Released);
    let seen = here.inspect(&first.key).await.unwrap();
    let queue: Vec<_> = seen.queue.iter().map(|waiter| waiter.id).collect();
    assert_eq!(queue, [next.id, later.id]);
}
