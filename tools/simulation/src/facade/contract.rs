//! Watches how the keeper uses its engine: at most one contender per key, and each is released before the next one starts.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use ylock_core::engine::{AcquisitionId, AtOnce, Engine, Grant, Release, Request};
use ylock_core::{Key, Result};
use ylock_testkit::{Wrapped, Wrapper};

use crate::oracle::Oracle;

/// An engine whose use is watched; see the [module](self).
#[derive(Debug)]
pub(super) struct Contract {
    inner: Arc<dyn Engine>,
    oracle: Arc<Oracle>,
    /// The acquisitions that were asked for, and neither refused nor given back.
    open: Mutex<BTreeMap<Key, AcquisitionId>>,
}

impl Contract {
    pub(super) fn over(inner: Arc<dyn Engine>, oracle: &Arc<Oracle>) -> Arc<dyn Engine> {
        Arc::new(Wrapped(Self { inner, oracle: Arc::clone(oracle), open: Mutex::default() }))
    }

    fn begin(&self, request: &Request) {
        let before = self.open.lock().insert(request.key.clone(), request.id);
        if before.is_some_and(|id| id != request.id) {
            self.oracle.complain(format!("a client contends twice for {}", request.key.name()));
        }
    }

    /// After an error, as after a drop, it is unknown what the store has: the acquisition must be released.
    fn answered(&self, request: &Request, answer: &Result<Option<Grant>>) {
        if let Ok(None) = answer {
            self.end(&request.key, request.id);
        }
    }

    fn end(&self, key: &Key, id: AcquisitionId) {
        let mut open = self.open.lock();
        if open.get(key) == Some(&id) {
            open.remove(key);
        }
    }
}

impl AtOnce for Contract {
    fn acquire(&self, request: &Request) -> Option<Result<Option<Grant>>> {
        self.begin(request);
        let answer = self.inner.at_once()?.acquire(request)?;
        self.answered(request, &answer);
        Some(answer)
    }

    fn release(&self, key: &Key, id: AcquisitionId, next: Option<&Request>) -> Result<Release> {
        self.end(key, id);
        self.inner.at_once().expect("asked only where it answers at once").release(key, id, next)
    }
}

impl Wrapper for Contract {
    fn inner(&self) -> &dyn Engine {
        &*self.inner
    }

    /// One, so that also the few locks of a simulation wait for each other's releases; nothing waits where the engine answers at once.
    fn concurrent_releases(&self) -> Option<usize> {
        self.at_once().is_none().then_some(1)
    }

    fn at_once(&self) -> Option<&dyn AtOnce> {
        self.inner.at_once().map(|_| self as _)
    }

    async fn acquire(&self, request: &Request) -> Result<Option<Grant>> {
        self.begin(request);
        let answer = self.inner.acquire(request).await;
        self.answered(request, &answer);
        answer
    }

    /// Counts a release that was tried as done: a keeper that has tried for a lease may go on.
    async fn release(&self, key: &Key, id: AcquisitionId, next: Option<&Request>) -> Result<Release> {
        self.end(key, id);
        self.inner.release(key, id, next).await
    }

    async fn close(&self) -> Result<()> {
        if !self.open.lock().is_empty() {
            self.oracle.complain("an engine is closed before everything is released".to_owned());
        }
        self.inner.close().await
    }
}
