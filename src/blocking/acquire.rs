//! One acquisition, for synchronous code.

use std::fmt;
use std::time::Duration;

use super::election::Leadership;
use super::guard::Guard;
use super::guards::Guards;
use super::outside::Outside;
use super::semaphore::Permit;
use super::tied::Tied;
use crate::{Owner, Reentrant, Result};

/// An acquisition, with [`wait`](Self::wait) in the place of `.await`; see [`crate::Acquire`], of which everything holds but what is said of dropped
/// futures: a wait that has begun cannot be cancelled, but it can be [bounded](Self::within).
///
/// # Examples
/// A clerk's program does not wait for long for a document that is being edited:
/// ```
/// # use std::time::Duration;
/// # fn main() -> ylock::Result<()> {
/// let documents = ylock::blocking::connect("memory://")?.locks("documents");
/// match documents.write(7).within(Duration::from_millis(200)).wait()? {
///     Some(_editing) => println!("it is yours"),
///     None => println!("another user is editing it"),
/// }
/// # Ok(()) }
/// ```
#[must_use = "nothing is acquired until you call `wait` or `run`"]
pub struct Acquire<G: Acquirable>(Tied<crate::Acquire<G::Async>>);

/// An acquisition that returns `None` where the lock is not free, or not in time; see [`Acquire`]. Made by [`Acquire::now`] and
/// [`Acquire::within`].
#[must_use = "nothing is acquired until you call `wait` or `run`"]
pub struct TryAcquire<G: Acquirable>(Tied<crate::TryAcquire<G::Async>>);

/// What an [`Acquire`] can acquire: a [`Guard`], a [`Permit`], [`Guards`] or a [`Leadership`]. Implemented by ylock only.
pub trait Acquirable: Sized {
    /// The same for async code.
    type Async: crate::Acquirable;

    #[doc(hidden)]
    fn of(acquired: Tied<Self::Async>) -> Self;
}

/// The view of what is acquired that work is given.
type LeaseOf<G> = <<G as Acquirable>::Async as crate::Acquirable>::Lease;

impl<G: Acquirable> Acquire<G> {
    pub(super) fn new(acquire: Tied<crate::Acquire<G::Async>>) -> Self {
        Self(acquire)
    }

    /// Waits its turn, and returns what was acquired.
    ///
    /// # Errors
    /// Those of [`crate::Acquire`]. Inside a task of an async runtime [`Invalid`](crate::ErrorKind::Invalid): see the
    /// [module](super#inside-an-async-runtime).
    pub fn wait(self) -> Result<G> {
        let (acquire, tie) = self.0.apart();
        tie.acquire(acquire).map(G::of)
    }

    /// Acquires only if that is possible now; otherwise the outcome is `None`. See [`crate::Acquire::now`].
    #[doc(alias = "try_lock")]
    #[doc(alias = "try_write")]
    #[doc(alias = "try_acquire")]
    pub fn now(self) -> TryAcquire<G> {
        TryAcquire(self.0.map(crate::Acquire::now))
    }

    /// Waits for at most this time; then the outcome is `None`. See [`crate::Acquire::within`].
    #[doc(alias = "timeout")]
    #[doc(alias = "write_within")]
    pub fn within(self, time: Duration) -> TryAcquire<G> {
        TryAcquire(self.0.map(|acquire| acquire.within(time)))
    }

    /// Acquires for this owner, whatever scope the caller is in.
    pub fn owned_by(self, owner: &Owner) -> Self
    where
        G::Async: Reentrant,
    {
        Self(self.0.map(|acquire| acquire.owned_by(owner)))
    }

    /// Acquires with this lease, instead of that of the options.
    pub fn with_lease(self, lease: Duration) -> Self {
        Self(self.0.map(|acquire| acquire.with_lease(lease)))
    }

    /// Acquires with this longest hold, instead of that of the options.
    pub fn with_max_hold(self, longest: Duration) -> Self {
        Self(self.0.map(|acquire| acquire.with_max_hold(longest)))
    }

    /// Waits its turn, runs `work` on this thread, and gives the lock back.
    ///
    /// # If the lock is lost
    /// `work` goes on, because no thread can be stopped; when it has ended the result is an error of kind [`Lost`](crate::ErrorKind::Lost). Long
    /// work asks [`Lease::check`](crate::Lease::check) between its steps.
    ///
    /// # Errors
    /// Those of [`wait`](Self::wait), and `Lost`.
    ///
    /// # Examples
    /// ```
    /// # fn pay(_: &str, _: Option<ylock::Token>) -> u64 { 12 }
    /// # fn main() -> ylock::Result<()> {
    /// let invoices = ylock::blocking::connect("memory://")?.locks("invoices");
    /// let paid = invoices.write("2026-11").run(|lease| pay("2026-11", lease.token()))?;
    /// # assert_eq!(paid, 12); Ok(()) }
    /// ```
    pub fn run<T>(self, work: impl FnOnce(LeaseOf<G>) -> T) -> Result<T> {
        let (acquire, tie) = self.0.apart();
        let outside = Outside::new();
        tie.work(acquire.run(|lease| outside.call(move || work(lease))), &outside)
    }
}

impl<G: Acquirable> TryAcquire<G> {
    /// Waits for the outcome. `None`: not free, or not in time.
    ///
    /// # Errors
    /// Those of [`Acquire::wait`] but `TimedOut`.
    pub fn wait(self) -> Result<Option<G>> {
        let (acquire, tie) = self.0.apart();
        Ok(tie.try_acquire(acquire)?.map(G::of))
    }

    /// Runs `work` as [`Acquire::run`] does; without any work the outcome is `None` where the lock is not free, or not in time.
    ///
    /// # Errors
    /// Those of [`wait`](Self::wait), and `Lost`.
    pub fn run<T>(self, work: impl FnOnce(LeaseOf<G>) -> T) -> Result<Option<T>> {
        let (acquire, tie) = self.0.apart();
        let outside = Outside::new();
        tie.work(acquire.run(|lease| outside.call(move || work(lease))), &outside)
    }
}

impl Acquirable for Guard {
    type Async = crate::Guard;

    fn of(acquired: Tied<crate::Guard>) -> Self {
        Self(acquired)
    }
}

impl Acquirable for Guards {
    type Async = crate::Guards;

    fn of(acquired: Tied<crate::Guards>) -> Self {
        Self(acquired)
    }
}

impl Acquirable for Permit {
    type Async = crate::Permit;

    fn of(acquired: Tied<crate::Permit>) -> Self {
        Self(acquired)
    }
}

impl Acquirable for Leadership {
    type Async = crate::Leadership;

    fn of(acquired: Tied<crate::Leadership>) -> Self {
        Self(acquired)
    }
}

impl<G: Acquirable> fmt::Debug for Acquire<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<G: Acquirable> fmt::Debug for TryAcquire<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
