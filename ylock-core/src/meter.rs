//! The meter with which engines tell how long their requests take.

use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::ArcSwapOption;

use crate::availability::Availability;
use crate::client_name::SharedName;
use crate::contact::{Pace, asking_at};
use crate::environment::Environment;
use crate::error::{Error, ErrorKind, Result};
use crate::foreign::guarded;

/// A listener that is told of requests.
pub trait Requests: Send + Sync {
    /// Called when a request to the store has ended.
    fn ended(&self, operation: &'static str, took: Duration, error: Option<ErrorKind>);
}

/// The meter of an engine's requests. Clones are the same meter. Without a listener nothing is reported.
#[derive(Clone, Default)]
pub struct Meter(Arc<Inner>);

#[derive(Default)]
struct Inner {
    /// True if there ever was a listener: asked for each request.
    on: AtomicBool,
    requests: ArcSwapOption<Weak<dyn Requests>>,
    availability: Availability,
    pace: Arc<Pace>,
}

impl Meter {
    /// Creates the meter of an engine whose store is at `address`: addresses as an operator writes them, without passwords.
    pub fn of(engine: &'static str, address: impl Into<String>) -> Self {
        let availability = Availability::of(engine, address.into());
        Self(Arc::new(Inner { availability, ..Inner::default() }))
    }

    /// Returns the address of the store; `None` for a store inside this process.
    pub fn address(&self) -> Option<&str> {
        Some(self.0.availability.address()).filter(|address| !address.is_empty())
    }

    /// Makes the log name this client from now on.
    pub(crate) fn belongs_to(&self, client: &SharedName) {
        self.0.availability.belongs_to(client);
    }

    /// Tells `requests` from now on, and no other listener.
    pub fn report_to(&self, requests: &Arc<dyn Requests>) {
        self.0.requests.store(Some(Arc::new(Arc::downgrade(requests))));
        self.0.on.store(true, Ordering::Release);
    }

    /// Sends one request to the store. `operation` is one of a few words of the engine. A request whose future is dropped is not counted.
    ///
    /// # Errors
    /// Those of the request.
    pub async fn measure<T>(
        &self,
        environment: &dyn Environment,
        operation: &'static str,
        request: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let failure = |answer: &Result<T>| answer.as_ref().err().map(Error::kind);
        self.measure_as(environment, operation, request, failure).await
    }

    /// Sends one request whose answer may be of any type: `failure` returns the kind of error that an answer stands for, if it is one.
    /// Otherwise like [`measure`](Self::measure).
    pub async fn measure_as<T>(
        &self,
        environment: &dyn Environment,
        operation: &'static str,
        request: impl Future<Output = T>,
        failure: impl Fn(&T) -> Option<ErrorKind>,
    ) -> T {
        let failed = |answer: &T| failure(answer).map(|kind| Error::new(kind, format!("{operation} failed")));
        let sent = environment.now();
        let answer = asking_at(environment, &self.0.pace, request, failed).await;
        let now = environment.now();
        let took = now.since(sent);
        self.0.availability.learn(failure(&answer), now);
        if !self.0.on.load(Ordering::Acquire) {
            return answer;
        }
        let listener = self.0.requests.load().as_ref().and_then(|requests| requests.upgrade());
        if let Some(listener) = listener {
            guarded("a listener", || listener.ended(operation, took, failure(&answer)));
        }
        answer
    }
}

impl fmt::Debug for Meter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Meter").field("on", &self.0.on.load(Ordering::Relaxed)).finish()
    }
}
