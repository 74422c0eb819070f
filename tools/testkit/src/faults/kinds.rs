//! The faults themselves.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use ylock_core::{Error, ErrorKind, Result};

use crate::wrapper::Call;

use super::faulty::Fault;

/// A store that is far away.
#[derive(Debug)]
pub struct Slow {
    there: Duration,
    back: Duration,
}

impl Slow {
    /// Creates a fault that takes this long until a call arrives, and until its answer is back.
    pub fn new(there: Duration, back: Duration) -> Self {
        Self { there, back }
    }
}

#[async_trait]
impl Fault for Slow {
    async fn before(&self, _call: Call) -> Result<()> {
        tokio::time::sleep(self.there).await;
        Ok(())
    }

    async fn after(&self, _call: Call) -> Result<()> {
        tokio::time::sleep(self.back).await;
        Ok(())
    }
}

/// A connection that breaks after the store has done what it was told.
#[derive(Debug)]
pub struct LosesReplies {
    call: Call,
    left: AtomicUsize,
    hangs: bool,
}

impl LosesReplies {
    /// Creates a fault that answers the first `times` calls of this kind with [`ErrorKind::Indeterminate`].
    pub fn of(call: Call, times: usize) -> Self {
        Self { call, left: AtomicUsize::new(times), hangs: false }
    }

    /// Creates a fault that does not answer the first `times` calls of this kind at all.
    pub fn hanging(call: Call, times: usize) -> Self {
        Self { hangs: true, ..Self::of(call, times) }
    }

    /// Returns how many replies will still be lost.
    pub fn left(&self) -> usize {
        self.left.load(Ordering::SeqCst)
    }

    fn loses(&self, call: Call) -> bool {
        let one_less = |left: usize| left.checked_sub(1);
        call == self.call && self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_ok()
    }
}

#[async_trait]
impl Fault for LosesReplies {
    async fn before(&self, _call: Call) -> Result<()> {
        Ok(())
    }

    async fn after(&self, call: Call) -> Result<()> {
        if !self.loses(call) {
            return Ok(());
        }
        if self.hangs {
            std::future::pending::<()>().await;
        }
        Err(Error::new(ErrorKind::Indeterminate, format!("the answer to {call:?} got lost")))
    }
}

/// A connection that breaks again and again, after the store has done what it was told.
#[derive(Debug)]
pub struct LosesEvery {
    period: usize,
    calls: AtomicUsize,
}

impl LosesEvery {
    /// Creates a fault that answers each `period`th call, of whatever kind, with [`ErrorKind::Indeterminate`].
    pub fn nth(period: usize) -> Self {
        Self { period, calls: AtomicUsize::new(0) }
    }
}

#[async_trait]
impl Fault for LosesEvery {
    async fn before(&self, _call: Call) -> Result<()> {
        Ok(())
    }

    async fn after(&self, call: Call) -> Result<()> {
        if (self.calls.fetch_add(1, Ordering::SeqCst) + 1).is_multiple_of(self.period) {
            return Err(Error::new(ErrorKind::Indeterminate, format!("the answer to {call:?} got lost")));
        }
        Ok(())
    }
}

/// A store that does not accept some calls for a while, or for ever.
#[derive(Debug)]
pub struct Outage {
    calls: &'static [Call],
    on: AtomicBool,
}

impl Outage {
    /// Creates an outage of these calls, which has begun: they fail until it [ends](Self::end).
    pub fn of(calls: &'static [Call]) -> Self {
        Self { calls, on: AtomicBool::new(true) }
    }

    /// Begins the outage again.
    pub fn begin(&self) {
        self.on.store(true, Ordering::SeqCst);
    }

    /// Ends the outage: the store is back.
    pub fn end(&self) {
        self.on.store(false, Ordering::SeqCst);
    }
}

#[async_trait]
impl Fault for Outage {
    async fn before(&self, call: Call) -> Result<()> {
        if self.on.load(Ordering::SeqCst) && self.calls.contains(&call) {
            return Err(Error::new(ErrorKind::Unavailable, format!("the store does not accept {call:?}")));
        }
        Ok(())
    }

    async fn after(&self, _call: Call) -> Result<()> {
        Ok(())
    }
}

/// No fault at all; counts.
#[derive(Debug, Default)]
pub struct CountsCalls([AtomicUsize; Call::ALL.len()]);

impl CountsCalls {
    /// Returns how many calls of this kind were made.
    pub fn of(&self, call: Call) -> usize {
        self.0[call as usize].load(Ordering::SeqCst)
    }

    /// Returns how many calls were made.
    pub fn all(&self) -> usize {
        self.0.iter().map(|count| count.load(Ordering::SeqCst)).sum()
    }
}

#[async_trait]
impl Fault for CountsCalls {
    async fn before(&self, call: Call) -> Result<()> {
        self.0[call as usize].fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    async fn after(&self, _call: Call) -> Result<()> {
        Ok(())
    }
}
