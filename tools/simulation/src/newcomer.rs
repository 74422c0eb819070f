//! A client that comes when all others are gone.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ylock_core::engine::{AcquisitionId, Engine, Request};
use ylock_core::environment::Environment;
use ylock_core::{ClientName, Key, Mode, Owner};

use crate::clocks::Clocks;

/// Acquires each of these locks for writing, gives them back, and closes its engine. Counts those that it got.
pub(crate) async fn visit(
    engine: Arc<dyn Engine>,
    clocks: Arc<Clocks>,
    keys: Vec<Key>,
    lease: Duration,
    got: Arc<AtomicUsize>,
) {
    for key in keys {
        let (id, owner) = (AcquisitionId::new(&*clocks), Owner::from_bytes([255; 16]));
        let request = Request::new(key, id, Mode::Write, owner, ClientName::default(), lease);
        let Ok(Some(_)) = engine.acquire(&request).await else { continue };
        got.fetch_add(1, Ordering::Relaxed);
        while engine.release(&request.key, request.id, None).await.is_err() {
            clocks.sleep(Duration::from_millis(200)).await;
        }
    }
    drop(engine.close().await);
}
