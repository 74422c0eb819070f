//! The one seam for time, randomness and tasks.
//!
//! No lock and no engine reads a clock, sleeps, draws a random number or spawns in another way. That is what lets the same code run
//! on a real machine, under tokio's paused time, and in a simulation where one seed decides everything.

mod background_task;
mod runtimes;
pub(crate) mod shift;
mod system;
mod timer;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

pub use background_task::BackgroundTask;
pub use system::SystemEnvironment;

/// A future that an [`Environment`] runs or returns.
pub type BoxFuture = Answer<()>;

/// A future that an [`Environment`] returns, with its result.
pub type Answer<T> = Pin<Box<dyn Future<Output = T> + Send + 'static>>;

/// A point in time on an environment's own clock. Only moments of one environment can be compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Moment(u64);

impl Moment {
    /// The first moment; every clock starts at or after it.
    pub const ZERO: Self = Self(0);

    /// Returns the moment this many nanoseconds after [`ZERO`](Self::ZERO).
    pub fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Returns the nanoseconds since [`ZERO`](Self::ZERO).
    pub fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns how long after `earlier` this is; zero if it is not after it.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Returns the moment `duration` later, or the last moment there is.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }
}

/// The runtime in which a future is polled; that of the thread, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuntimeId(Option<tokio::runtime::Id>);

impl RuntimeId {
    /// Returns the runtime of this thread.
    pub fn current() -> Self {
        Self(tokio::runtime::Handle::try_current().ok().map(|handle| handle.id()))
    }
}

/// The source of time, randomness and tasks.
///
/// What a method does by itself is for an environment with one runtime, which does not end and
/// does not stand still.
pub trait Environment: fmt::Debug + Send + Sync + 'static {
    /// Returns the present moment, on a clock that never steps back. On a real machine it counts suspend, as far as the system can; see
    /// [`SystemEnvironment`].
    fn now(&self) -> Moment;

    /// Returns the wall clock: microseconds since 1970. It may step in either direction; nothing that must be safe uses it. Which period of a job is
    /// the present one is what it says, and that a period is not run twice does not rest on it.
    fn wall_micros(&self) -> i64;

    /// Returns 64 random bits.
    fn random(&self) -> u64;

    /// Waits for `duration` of *running* time.
    fn sleep(&self, duration: Duration) -> BoxFuture;

    /// Starts a task of the client's background work that comes to an end: in the runtime of the caller, or elsewhere if that has ended.
    ///
    /// # If the runtime ends, or stands still
    /// - A future that was not polled yet is carried on elsewhere. It is dropped only where nothing will ever run again.
    /// - A future that was polled is dropped, wherever it stands: what it waits for may have belonged to that runtime. Work that must
    ///   go on is a [`BackgroundTask`]'s, or is started again by the future's own drop.
    fn spawn(&self, future: BoxFuture);

    /// Starts a task for a future that was polled in this runtime. If that has ended, the future is dropped, as in [`spawn`](Self::spawn).
    fn spawn_begun(&self, future: BoxFuture, _runtime: RuntimeId) {
        self.spawn(future);
    }

    /// Starts a task for a connection that was made in the runtime of the caller. It is dropped where that runtime ends or stands
    /// still, whether it was polled or not.
    fn spawn_beside(&self, future: BoxFuture) {
        self.spawn(future);
    }

    /// Starts a task for what all users of the client need, whichever of them comes first: a session, renewals. It runs on a thread of
    /// the client's own, which no other work of the program can block; a thread that a program has paused the clock of excepted.
    /// Otherwise like [`spawn`](Self::spawn).
    fn spawn_for_all(&self, future: BoxFuture) {
        self.spawn(future);
    }

    /// Waits until each other runtime in which the client was used has run something; with `which`
    /// only that one. One that has not in this time stands still: it is not driven, or all its
    /// threads are blocked. It is treated as if it had ended, until a caller comes from it again.
    /// Returns whether there was one: what then waits for an answer over a connection may wait in
    /// vain.
    fn abandon_standing(&self, _which: Option<RuntimeId>, _patience: Duration) -> Answer<bool> {
        Box::pin(std::future::ready(false))
    }

    /// Waits until the runtime has ended in which this was called.
    fn end_of_runtime(&self) -> Answer<()> {
        Box::pin(std::future::pending())
    }

    /// Remembers the runtime of the caller as one in which background work of the client may run. Returns whether there is one.
    fn enter(&self) -> bool;

    /// Returns whether the caller is in a runtime that has not ended, so that it may poll what the client does. Remembers the runtime, as
    /// [`enter`](Self::enter) does.
    fn runs_here(&self) -> bool {
        self.enter()
    }
}

impl dyn Environment {
    /// Returns 128 random bits, for identities that are never used again.
    pub fn random_identity(&self) -> u128 {
        (u128::from(self.random()) << 64) | u128::from(self.random())
    }

    /// Returns a duration between a half and three halves of `middle`, so that waiters do not move in step.
    pub fn jitter(&self, middle: Duration) -> Duration {
        middle.mul_f64(0.5 + self.fraction())
    }

    /// Returns a number of at least zero and below one.
    pub fn fraction(&self) -> f64 {
        (self.random() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Returns 128 random bits, for identities that are never used again.
pub(crate) fn entropy() -> u128 {
    rand::random()
}
