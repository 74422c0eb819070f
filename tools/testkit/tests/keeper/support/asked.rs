//! An engine that notes what it is asked, and may be told to refuse it.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use ylock_core::engine::{AcquisitionId, Engine, Grant, Holding, Meter, Release, Renewal, Request};
use ylock_core::{Key, Result};
use ylock_testkit::{Wrapped, Wrapper};

/// A call that the engine was asked to make.
#[derive(Clone, Debug)]
pub(crate) enum Asked {
    Acquire(Request),
    Renew(Holding),
    Release(AcquisitionId, Option<Request>),
}

/// An error is returned instead of asking the store.
type Judge = dyn Fn(&Asked) -> Result<()> + Send + Sync;

/// An engine over another one, with notes.
pub(crate) struct Notes {
    inner: Arc<dyn Engine>,
    all: Mutex<Vec<Asked>>,
    judge: Box<Judge>,
    /// The releases that are on their way at once, to begin with.
    concurrent_releases: Option<usize>,
    /// The meter of a store that is outside this process.
    meter: Meter,
}

impl Notes {
    /// Refuses the calls for which `judge` returns an error.
    pub(crate) fn over(
        inner: impl Engine,
        judge: impl Fn(&Asked) -> Result<()> + Send + Sync + 'static,
    ) -> Arc<Wrapped<Self>> {
        Self::with_limit(inner, None, judge)
    }

    /// Notes all calls. At most so many releases, to begin with, are on their way at once.
    pub(crate) fn throttled(inner: impl Engine, releases: usize) -> Arc<Wrapped<Self>> {
        Self::with_limit(inner, Some(releases), |_| Ok(()))
    }

    fn with_limit(
        inner: impl Engine,
        concurrent_releases: Option<usize>,
        judge: impl Fn(&Asked) -> Result<()> + Send + Sync + 'static,
    ) -> Arc<Wrapped<Self>> {
        Arc::new(Wrapped(Self {
            inner: Arc::new(inner),
            concurrent_releases,
            all: Mutex::default(),
            judge: Box::new(judge),
            meter: Meter::of("noted", "store:7"),
        }))
    }

    /// The acquisitions that were asked for.
    pub(crate) fn acquired(&self) -> Vec<AcquisitionId> {
        let all = self.all.lock();
        let acquired = all.iter().filter_map(|asked| match asked {
            Asked::Acquire(request) => Some(request.id),
            _ => None,
        });
        acquired.collect()
    }

    /// The releases that were asked for: which acquisition, and which follows.
    pub(crate) fn releases(&self) -> Vec<(AcquisitionId, Option<AcquisitionId>)> {
        let all = self.all.lock();
        let releases = all.iter().filter_map(|asked| match asked {
            Asked::Release(id, next) => Some((*id, next.as_ref().map(|next| next.id))),
            _ => None,
        });
        releases.collect()
    }

    /// The request that followed the last release, if any.
    pub(crate) fn followed(&self) -> Option<Request> {
        self.all.lock().iter().rev().find_map(|asked| match asked {
            Asked::Release(_, next) => Some(next.clone()),
            _ => None,
        })?
    }

    /// The renewals that were asked for.
    pub(crate) fn renewals(&self) -> Vec<Holding> {
        let all = self.all.lock();
        let renewals = all.iter().filter_map(|asked| match asked {
            Asked::Renew(holding) => Some(holding.clone()),
            _ => None,
        });
        renewals.collect()
    }

    fn ask(&self, asked: Asked) -> Result<()> {
        let answer = (self.judge)(&asked);
        self.all.lock().push(asked);
        answer
    }
}

impl Wrapper for Notes {
    fn inner(&self) -> &dyn Engine {
        &*self.inner
    }

    fn meter(&self) -> &Meter {
        &self.meter
    }

    fn concurrent_releases(&self) -> Option<usize> {
        self.concurrent_releases
    }

    async fn acquire(&self, request: &Request) -> Result<Option<Grant>> {
        self.ask(Asked::Acquire(request.clone()))?;
        self.inner.acquire(request).await
    }

    async fn renew(&self, holdings: &[Holding]) -> Vec<Result<Renewal>> {
        let mut answers = Vec::new();
        for holding in holdings {
            match self.ask(Asked::Renew(holding.clone())) {
                Ok(()) => answers.extend(self.inner.renew(std::slice::from_ref(holding)).await),
                Err(error) => answers.push(Err(error)),
            }
        }
        answers
    }

    async fn release(&self, key: &Key, id: AcquisitionId, next: Option<&Request>) -> Result<Release> {
        self.ask(Asked::Release(id, next.cloned()))?;
        self.inner.release(key, id, next).await
    }
}

impl fmt::Debug for Notes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notes").field("inner", &self.inner).finish_non_exhaustive()
    }
}
