//! An environment whose clock can be put forward, whose background work can be switched off, and in which other threads come between.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use ylock_core::environment::{BoxFuture, Environment, Moment, RuntimeId, SystemEnvironment};

/// Tokio's clock, put forward by hand. Its timers count tokio's time only: a jump is what a machine sees that was suspended.
pub(crate) struct Warped {
    inner: Arc<dyn Environment>,
    ahead: AtomicU64,
    idle: AtomicBool,
    between: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl fmt::Debug for Warped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Warped")
    }
}

impl Warped {
    pub(crate) fn new() -> Arc<Self> {
        let inner = SystemEnvironment::on_tokio_clock();
        Arc::new(Self {
            inner,
            ahead: AtomicU64::new(0),
            idle: AtomicBool::new(false),
            between: Mutex::default(),
        })
    }

    /// Time passes, and no timer notices.
    pub(crate) fn jump(&self, time: Duration) {
        self.ahead.fetch_add(u64::try_from(time.as_nanos()).unwrap(), Ordering::SeqCst);
    }

    /// Done once, by the next caller that has found out that its owner does not hold the lock and has not joined the queue yet.
    pub(crate) fn before_it_queues(&self, act: impl FnOnce() + Send + 'static) {
        *self.between.lock() = Some(Box::new(act));
    }

    /// From now on no task is started: they are dropped, as on a machine that has no thread for them.
    pub(crate) fn drop_tasks(&self) {
        self.idle.store(true, Ordering::SeqCst);
    }

    /// From now on tasks are started again.
    pub(crate) fn start_tasks(&self) {
        self.idle.store(false, Ordering::SeqCst);
    }
}

impl Environment for Warped {
    fn now(&self) -> Moment {
        self.inner.now().plus(Duration::from_nanos(self.ahead.load(Ordering::SeqCst)))
    }

    fn wall_micros(&self) -> i64 {
        self.inner.wall_micros()
    }

    fn random(&self) -> u64 {
        self.inner.random()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture {
        self.inner.sleep(duration)
    }

    fn spawn(&self, future: BoxFuture) {
        if !self.idle.load(Ordering::SeqCst) {
            self.inner.spawn(future);
        }
    }

    fn spawn_begun(&self, future: BoxFuture, runtime: RuntimeId) {
        if !self.idle.load(Ordering::SeqCst) {
            self.inner.spawn_begun(future, runtime);
        }
    }

    fn spawn_for_all(&self, future: BoxFuture) {
        if !self.idle.load(Ordering::SeqCst) {
            self.inner.spawn_for_all(future);
        }
    }

    fn runs_here(&self) -> bool {
        self.inner.runs_here()
    }

    fn enter(&self) -> bool {
        let act = self.between.lock().take();
        act.into_iter().for_each(|act| act());
        self.inner.enter()
    }
}
