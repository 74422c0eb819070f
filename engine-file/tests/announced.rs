//! A renewal that waits for the lock's file, and a release of the waiter that it announces.
#![cfg(target_os = "linux")]

mod folder;

use std::fs::File;

use folder::Folder;
use futures_util::poll;
use rustix::fs::{FlockOperation, flock};
use std::pin::pin;
use std::time::Duration;
use ylock_core::engine::{AcquisitionId, Engine, Holding, Renewal, Request};
use ylock_core::{ClientName, Key, Mode, Owner};

#[tokio::test]
async fn a_waiter_that_was_released_does_not_come_back_by_a_renewal_that_was_under_way() {
    let folder = Folder::new();
    let engine = folder.client().await;
    let key = Key::new("users", "alice").unwrap();
    let request = || {
        let id = AcquisitionId::new(&*engine.environment());
        let lease = Duration::from_secs(60);
        Request::new(key.clone(), id, Mode::Write, Owner::new(), ClientName::default(), lease)
    };
    let (held, next) = (request(), request());
    let grant = engine.acquire(&held).await.unwrap().unwrap();
    let holdings = [Holding::new(grant, next.clone())];
    // As another process that is in the middle of a change.
    let file = File::open(folder.path().join("locks/users=alice")).unwrap();
    flock(&file, FlockOperation::LockExclusive).unwrap();
    let mut renewing = pin!(engine.renew(&holdings));
    assert!(poll!(renewing.as_mut()).is_pending());
    flock(&file, FlockOperation::Unlock).unwrap();
    engine.release(&key, next.id, None).await.unwrap();
    let renewed = renewing.await.remove(0).unwrap();
    assert!(matches!(renewed, Renewal::Renewed { .. }), "{renewed:?}");
    assert!(engine.inspect(&key).await.unwrap().queue.is_empty());
}
