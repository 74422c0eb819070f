//! A connection that all requests of a client share, and that is made again whenever it has ended.
//!
//! For engines. Not covered by semver.

mod attempt;
mod elsewhere;

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;

pub use attempt::{Place, REST, SharedAttempt};
pub use elsewhere::{Elsewhere, driven};

use crate::environment::{Answer, Environment, RuntimeId};
use crate::error::{Error, ErrorKind, Result};

/// The number of times that a request looks for a connection, because the runtime of one may have
/// ended and taken it along.
const ATTEMPTS: usize = 4;

/// The driver's side of a connection.
pub trait Connected: Send + Sync + 'static {
    /// Returns whether the driver knows that nothing can be sent over it any more.
    fn is_closed(&self) -> bool {
        false
    }

    /// Told once when no request uses it from then on.
    fn ended(&self) {}
}

impl<C: Connected> Connected for Arc<C> {
    fn is_closed(&self) -> bool {
        C::is_closed(self)
    }

    fn ended(&self) {
        C::ended(self);
    }
}

/// A connection that all requests of a client share; see the [module](self).
///
/// The driver's tasks for a connection run in the runtime in which it was made, which is that of
/// the caller that has needed it first. When that runtime ends, or stands still, the next request
/// connects anew, in its own runtime, and does not try the dead connection.
pub struct SharedConnection<C> {
    environment: Arc<dyn Environment>,
    timeouts: Timeouts,
    live: Slot<C>,
    attempt: SharedAttempt,
}

type Slot<C> = Arc<Mutex<Option<Live<C>>>>;

/// How long what may take.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// An attempt to connect that has been under way for so long is left alone.
    pub connect: Duration,
    /// A runtime that runs nothing for a quarter of this is not relied on. A request may take less than a third of a lease: so a
    /// lease has room for a connection that stands still, and for connecting elsewhere.
    pub request: Duration,
}

/// One life of a connection.
pub struct Live<C> {
    connection: C,
    life: Arc<Life>,
}

/// Belongs to one life of a connection, so that no task throws away a newer one.
struct Life {
    runtime: RuntimeId,
    /// True once the runtime has ended, or was found to stand still.
    is_over: AtomicBool,
    /// Dropped with the last clone: that ends the task that waits for the end of the runtime.
    _watched: oneshot::Sender<()>,
}

impl<C: Connected + Clone> SharedConnection<C> {
    /// Creates one that is not connected yet.
    pub fn new(environment: &Arc<dyn Environment>, timeouts: Timeouts) -> Self {
        Self {
            environment: Arc::clone(environment),
            timeouts,
            live: Slot::default(),
            attempt: SharedAttempt::default(),
        }
    }

    /// Returns the connection, if there is one, wherever its runtime is.
    pub fn current(&self) -> Option<Live<C>> {
        self.live.lock().clone().filter(|live| !live.is_closed())
    }

    /// Returns the connection if there is one that is driven where the caller is.
    pub fn here(&self) -> Option<Live<C>> {
        self.current().filter(|live| live.life.runtime == RuntimeId::current())
    }

    /// Returns the connection, or makes one. `connect` makes it and [puts](Self::put) it here; it
    /// is called for one of the requests that need it at the same time, and the others wait for the
    /// same.
    ///
    /// # Errors
    /// Those of `connect`. After it has failed it is not called again for a moment.
    pub async fn get(&self, connect: impl Fn() -> Answer<Result<()>>) -> Result<Live<C>> {
        self.get_within(self.timeouts.connect, connect).await
    }

    /// The same, for an attempt that may take another time.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn get_within(
        &self,
        longest: Duration,
        connect: impl Fn() -> Answer<Result<()>>,
    ) -> Result<Live<C>> {
        let patience = self.timeouts.request / 4;
        for _ in 0..ATTEMPTS {
            if let Some(live) = self.here() {
                return Ok(live);
            }
            if let Some(live) = self.current() {
                // Over a connection whose runtime stands still no answer would come. If it does,
                // this forgets it.
                self.environment.abandon_standing(Some(live.life.runtime), patience).await;
                if let Some(live) = self.current() {
                    return Ok(live);
                }
            }
            let times = (longest, patience);
            let attempt = self.attempt.join(&self.environment, Place::WithCaller, times, &connect);
            if let Some(Err(error)) = attempt.await {
                return Err(error);
            }
            // The connection is there, or the runtime in which it was made has ended.
        }
        Err(Error::new(ErrorKind::Unavailable, "no runtime is left to connect in"))
    }

    /// Returns what to wait with for an answer over this connection, if it is not driven where the
    /// caller is.
    pub fn elsewhere(&self, live: &Live<C>) -> Option<Elsewhere> {
        (live.life.runtime != RuntimeId::current()).then(|| Elsewhere {
            environment: Arc::clone(&self.environment),
            life: Arc::clone(&live.life),
            patience: self.timeouts.request / 4,
        })
    }

    /// Puts a connection here that was made in the runtime of the caller.
    pub fn put(&self, connection: C) {
        let (watched, ended) = oneshot::channel::<()>();
        let life = Arc::new(Life {
            runtime: RuntimeId::current(),
            is_over: AtomicBool::new(false),
            _watched: watched,
        });
        let watch = Watch { slot: Arc::downgrade(&self.live), life: Arc::downgrade(&life) };
        let before = self.live.lock().replace(Live { connection, life });
        if let Some(before) = before {
            before.connection.ended();
        }
        self.environment.spawn_beside(Box::pin(async move {
            drop(ended.await);
            drop(watch);
        }));
    }

    /// Forgets this life of the connection, unless there is a newer one. Returns whether it was
    /// there.
    pub fn forget(&self, live: &Live<C>) -> bool {
        empty(&self.live, |now| Arc::ptr_eq(&now.life, &live.life))
    }

    /// Forgets the connection if this is so.
    pub fn forget_if(&self, is_so: impl Fn(&C) -> bool) {
        empty(&self.live, |now| is_so(&now.connection));
    }

    /// Returns whether this is still the life of the connection that requests use.
    pub fn is_current(&self, live: &Live<C>) -> bool {
        self.live.lock().as_ref().is_some_and(|now| Arc::ptr_eq(&now.life, &live.life))
    }
}

/// Forgets a connection if this is so.
fn empty<C: Connected>(slot: &Mutex<Option<Live<C>>>, is_so: impl Fn(&Live<C>) -> bool) -> bool {
    let taken = slot.lock().take_if(|live| is_so(live));
    // Outside the lock: the driver's code.
    if let Some(live) = &taken {
        live.connection.ended();
    }
    taken.is_some()
}

/// A watch over the runtime of a connection. The driver's tasks run in the runtime in which the
/// connection was made, and so does the task that has this value, and that drops it when that
/// runtime ends or stands still.
struct Watch<C: Connected> {
    slot: Weak<Mutex<Option<Live<C>>>>,
    life: Weak<Life>,
}

impl<C: Connected> Drop for Watch<C> {
    fn drop(&mut self) {
        if let Some(slot) = self.slot.upgrade() {
            empty(&slot, |live| std::ptr::eq(Arc::as_ptr(&live.life), self.life.as_ptr()));
        }
        // Last: a request that has found this must not find the connection again.
        if let Some(life) = self.life.upgrade() {
            life.is_over.store(true, Ordering::Release);
        }
    }
}

impl<C: Clone> Clone for Live<C> {
    fn clone(&self) -> Self {
        Self { connection: self.connection.clone(), life: Arc::clone(&self.life) }
    }
}

impl<C> Deref for Live<C> {
    type Target = C;

    fn deref(&self) -> &C {
        &self.connection
    }
}

impl<C> DerefMut for Live<C> {
    fn deref_mut(&mut self) -> &mut C {
        &mut self.connection
    }
}

impl<C> fmt::Debug for Live<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Live").field("runtime", &self.life.runtime).finish_non_exhaustive()
    }
}

impl<C> fmt::Debug for SharedConnection<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedConnection").field("live", &*self.live.lock()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
