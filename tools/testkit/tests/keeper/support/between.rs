//! Faults that put something between a call of the engine and its answer.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::sync::Notify;
use ylock_core::Result;
use ylock_testkit::{Call, Fault};

/// Something that happens at the moment at which the store has done what it was asked, and no client knows it yet.
pub(crate) struct Meanwhile {
    call: Call,
    work: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Meanwhile {
    /// At the next call of this kind.
    pub(crate) fn at(call: Call) -> Self {
        Self { call, work: Mutex::default() }
    }

    pub(crate) fn set(&self, work: impl FnOnce() + Send + 'static) {
        *self.work.lock() = Some(Box::new(work));
    }

    pub(crate) fn is_done(&self) -> bool {
        self.work.lock().is_none()
    }
}

#[async_trait]
impl Fault for Meanwhile {
    async fn before(&self, _call: Call) -> Result<()> {
        Ok(())
    }

    async fn after(&self, call: Call) -> Result<()> {
        if call == self.call {
            let work = self.work.lock().take();
            work.into_iter().for_each(|work| work());
        }
        Ok(())
    }
}

impl fmt::Debug for Meanwhile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Meanwhile").field("call", &self.call).finish_non_exhaustive()
    }
}

/// A gate before the store, for calls of one kind.
#[derive(Debug)]
pub(crate) struct Gate {
    call: Call,
    closed: AtomicBool,
    opened: Notify,
    waiting: AtomicUsize,
}

impl Gate {
    /// Requests do not reach the store while it is closed.
    pub(crate) fn before(call: Call) -> Self {
        let (closed, opened, waiting) = (AtomicBool::new(false), Notify::new(), AtomicUsize::new(0));
        Self { call, closed, opened, waiting }
    }

    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }

    pub(crate) fn open(&self) {
        self.closed.store(false, Ordering::SeqCst);
        self.opened.notify_waiters();
    }

    /// How many stand before it.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::SeqCst)
    }

    async fn pass(&self) {
        let opened = self.opened.notified();
        if self.closed.load(Ordering::SeqCst) {
            self.waiting.fetch_add(1, Ordering::SeqCst);
            opened.await;
            self.waiting.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

#[async_trait]
impl Fault for Gate {
    async fn before(&self, call: Call) -> Result<()> {
        if call == self.call {
            self.pass().await;
        }
        Ok(())
    }

    async fn after(&self, _call: Call) -> Result<()> {
        Ok(())
    }
}
