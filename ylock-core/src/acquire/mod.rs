//! One acquisition: a future that can be told more before it is awaited.

mod acquirable;
mod one;
mod stage;
mod told;
mod work;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

pub use acquirable::{Acquirable, Reentrant};
pub(crate) use acquirable::{Call, LockTarget};
pub(crate) use one::{acquire_or_time_out, acquire_within};
pub(crate) use told::{acquisition, layers_over, tell};
pub(crate) use work::{give_back, owner_of, stopped_if_lost, with_new_owner, with_owner};

use crate::deadline::AT_ONCE;
use crate::error::Result;
use crate::guard::Guard;
use crate::keeper::Site;
use crate::key::Key;
use crate::mode::Mode;
use crate::options::Options;
use crate::owner::Owner;
use crate::terms::Terms;
use stage::Stage;
use work::work_under;

/// An acquisition: a future that waits its turn, and is told before that how long it may wait, for whom, or what to run.
///
/// Returned by [`Locks::write`](crate::Locks::write) and [`read`](crate::Locks::read), [`Semaphore::acquire`](crate::Semaphore::acquire),
/// [`MultiLock::acquire`](crate::MultiLock::acquire) and [`Election::campaign`](crate::Election::campaign). Nothing happens until it is awaited.
///
/// | | returns |
/// |---|---|
/// | `users.write("alice").await?` | the guard, when its turn has come |
/// | `users.write("alice").now().await?` | `None` if the lock is not free |
/// | `users.write("alice").within(time).await?` | `None` if its turn has not come in this time |
/// | `users.write("alice").run(work).await?` | what the work returns; the work is stopped if the lock is lost |
/// | `users.write("alice").within(time).run(work).await?` | the same, or `None` without any work |
///
/// # Fairness
/// As the [options](Options::with_fairness) say: by default in the order of arrival, but for a bounded number of
/// [hand-overs](Options::with_hand_over) inside a process. A reader does not overtake a writer that waits, so readers that keep coming starve no
/// writer; with [`Unfair`](crate::Fairness::Unfair) it may.
///
/// # Reentrancy
/// Granted at once if the same owner holds the lock exclusively, or holds it as a reader and wants to read. An owner that holds it as a reader and
/// wants to write gets [`WouldDeadlock`](crate::ErrorKind::WouldDeadlock) at once, because two readers that both want to write would wait for each
/// other for ever: give the read guard back first. For semaphores see [`Semaphore`](crate::Semaphore), for sets [`MultiLock`](crate::MultiLock).
///
/// A call without an owner is an owner of its own. So a task that holds the lock and acquires it once more without naming the owner of its guard
/// ([`owned_by`](Self::owned_by), [`Owner::scope`], or work inside [`run`](Self::run)) waits for itself, for ever: no error, because the guard may be
/// on its way to another task. After a second a warning in the log names both calls. So does a task that holds it as a reader, as soon as a writer
/// waits between its two calls. With [`now`](Self::now) a task never waits for itself: it gets `None`.
///
/// # Cancel safety
/// Dropping the future leaves the queue and leaves nothing behind in the store. The place in the queue is lost. With [`run`](Self::run) it also drops
/// the work, and gives the lock back.
///
/// # If the lock is lost
/// The guard says so: [`Lease::lost`](crate::Lease::lost), [`Lease::is_valid`](crate::Lease::is_valid). Work that must stop then is best done by
/// [`run`](Self::run).
///
/// # Errors
/// - [`Invalid`](crate::ErrorKind::Invalid): the group or the name is outside its limits, or there is no tokio runtime.
/// - [`Config`](crate::ErrorKind::Config): the engine cannot have the lease of the options.
/// - [`Unavailable`](crate::ErrorKind::Unavailable): the store has not answered for about one lease; or, where the wait is limited, has not
///   answered the last request when it is over. That is not the same as `None`.
/// - [`TimedOut`](crate::ErrorKind::TimedOut): the options have a [longest wait](Options::with_max_wait), and other owners hold the lock for longer.
///   The error says which client held it shortly before, and how many waiters were before the caller, if the store could be asked in time.
///   Each other process counts as one waiter, however many of its tasks wait. Not with [`now`](Self::now) and [`within`](Self::within).
/// - [`WouldDeadlock`](crate::ErrorKind::WouldDeadlock): the owner holds the lock as a reader, and wants to write.
/// - [`Refused`](crate::ErrorKind::Refused): a [layer](crate::Layer) has refused it.
/// - [`Closed`](crate::ErrorKind::Closed): [`Ylock::close`](crate::Ylock::close) was called.
///
/// # Examples
/// A web handler tells a document that is being edited from a store that is away:
/// ```
/// # use std::time::Duration;
/// # use ylock::{ErrorKind, Ylock};
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
/// let documents = Ylock::in_memory().locks("documents");
/// let status = match documents.write(7).within(Duration::from_millis(200)).await {
///     Ok(Some(_editing)) => 200,
///     Ok(None) => 409,
///     Err(error) if error.kind() == ErrorKind::Unavailable => 503,
///     Err(error) => return Err(error),
/// };
/// # assert_eq!(status, 200); Ok(()) }
/// ```
#[must_use = "nothing is acquired until this is awaited"]
pub struct Acquire<G: Acquirable>(Stage<Call<G::Target>, G>);

/// An acquisition that returns `None` where the lock is not free, or not in time; see [`Acquire`]. Made by [`Acquire::now`] and
/// [`Acquire::within`].
#[must_use = "nothing is acquired until this is awaited"]
pub struct TryAcquire<G: Acquirable>(Stage<Bounded<G::Target>, Option<G>>);

/// A call, and its longest wait.
type Bounded<T> = (Call<T>, Option<Duration>);

impl Acquire<Guard> {
    pub(crate) fn one(terms: &Terms, key: Result<Key>, mode: Mode, at: Site) -> Self {
        Self::new(terms, LockTarget { key, mode }, at)
    }
}

impl<G: Acquirable> Acquire<G> {
    pub(crate) fn new(terms: &Terms, target: G::Target, at: Site) -> Self {
        Self(Stage::Asked(Call { terms: terms.clone(), target, at }))
    }

    /// Acquires only if that is possible now; otherwise the output is `None`.
    ///
    /// Never waits for another holder, only for the answer of the store, and for that at most one request timeout of the engine. What is acquired
    /// is given back as soon as it is dropped: after `write(name).now().await?;`, `….is_some()` or `let _ = …` nothing is
    /// protected.
    ///
    /// # Fairness
    /// Does not overtake waiters; with [`Unfair`](crate::Fairness::Unfair) it may overtake those of other processes. Of many callers that try
    /// a free name at once, one gets it, unless one of them fails with `Unavailable`; with `protocol=shadow-rows` perhaps none. Of many that try
    /// sets which overlap perhaps none gets its set. A reader may get `None` where readers of the same client are just acquiring the lock.
    ///
    /// # Examples
    /// One of several replicas fills a cache; the others serve the old value until then:
    /// ```
    /// # use ylock::Ylock;
    /// # async fn fill() {}
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
    /// let cache = Ylock::in_memory().locks("cache");
    /// if let Some(_filling) = cache.write("front page").now().await? {
    ///     fill().await;
    /// }
    /// # Ok(()) }
    /// ```
    #[doc(alias = "try_lock")]
    #[doc(alias = "try_write")]
    #[doc(alias = "try_acquire")]
    pub fn now(self) -> TryAcquire<G> {
        self.bounded(AT_ONCE)
    }

    /// Waits for at most this time; then the output is `None`: other owners hold the lock or were first. Zero is the same as [`now`](Self::now).
    ///
    /// It bounds the wait, and never the work of [`TryAcquire::run`]. A time that is shorter than a few trips to the store may end with `None` on
    /// a free lock too.
    #[doc(alias = "timeout")]
    #[doc(alias = "write_within")]
    pub fn within(self, time: Duration) -> TryAcquire<G> {
        self.bounded(Some(time))
    }

    fn bounded(self, max_wait: Option<Duration>) -> TryAcquire<G> {
        TryAcquire(self.0.map(|call| (call, max_wait)))
    }

    /// Acquires for this owner, whatever scope the caller is in.
    pub fn owned_by(self, owner: &Owner) -> Self
    where
        G: Reentrant,
    {
        self.on_terms(|terms| terms.owned_by(owner))
    }

    /// Acquires with this [lease](Options::with_lease), instead of that of the options.
    pub fn with_lease(self, lease: Duration) -> Self {
        self.on_terms(|terms| terms.with_options(Options::default().with_lease(lease)))
    }

    /// Acquires with this [longest hold](Options::with_max_hold), instead of that of the options.
    pub fn with_max_hold(self, longest: Duration) -> Self {
        self.on_terms(|terms| terms.with_options(Options::default().with_max_hold(longest)))
    }

    fn on_terms(self, change: impl FnOnce(&Terms) -> Terms) -> Self {
        Self(self.0.map(|call| Call { terms: change(&call.terms), ..call }))
    }

    /// Waits its turn, runs `work`, and gives the lock back. Stops the work if the lock is lost.
    ///
    /// Inside `work` the owner is current: it may acquire the same lock again. The work of a semaphore has no owner.
    ///
    /// # Cancel safety
    /// Dropping the future drops `work` and gives the lock back.
    ///
    /// # If the lock is lost
    /// The future of `work` is dropped, wherever it is, and the result is an error of kind [`Lost`](crate::ErrorKind::Lost). What the work did
    /// until then stays done, so let it send the [token](crate::Lease::token) with everything that must not happen twice. Until then the lease is
    /// renewed.
    ///
    /// # Errors
    /// Those of [`Acquire`], and `Lost`. If `work` ended while the lock was valid its result is returned even if giving the lock back fails
    /// afterwards.
    ///
    /// # Examples
    /// A payment is refused by the database once a later holder has written:
    /// ```
    /// # use ylock::{Token, Ylock};
    /// # async fn pay(_: &str, _: Option<Token>) -> u64 { 12 }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
    /// let invoices = Ylock::in_memory().locks("invoices");
    /// let paid = invoices.write("2026-11").run(|lease| async move { pay("2026-11", lease.token()).await }).await?;
    /// # assert_eq!(paid, 12); Ok(()) }
    /// ```
    pub async fn run<W, F>(self, work: W) -> Result<F::Output>
    where
        W: FnOnce(G::Lease) -> F,
        F: Future,
    {
        let call = with_owner_named(self.0.asked()?);
        let terms = call.terms.clone();
        work_under(&terms, G::acquire(call).await?, work).await
    }
}

impl<G: Acquirable> TryAcquire<G> {
    /// Runs `work` as [`Acquire::run`] does; without any work the output is `None` where the lock is not free, or not in time.
    ///
    /// # Examples
    /// A user asks for a report that is being made already, and is told so after a moment:
    /// ```
    /// # use std::time::Duration;
    /// # use ylock::Ylock;
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
    /// let reports = Ylock::in_memory().locks("reports");
    /// let writing = reports.write("monthly").await?;
    ///
    /// let made = reports.write("monthly").within(Duration::from_millis(50)).run(|_| async { "a report" }).await?;
    /// assert!(made.is_none()); // it is still being made for another user
    /// # drop(writing); Ok(()) }
    /// ```
    pub async fn run<W, F>(self, work: W) -> Result<Option<F::Output>>
    where
        W: FnOnce(G::Lease) -> F,
        F: Future,
    {
        let (call, max_wait) = self.0.asked()?;
        let call = with_owner_named(call);
        let terms = call.terms.clone();
        match G::acquire_within(call, max_wait).await? {
            Some(acquired) => work_under(&terms, acquired, work).await.map(Some),
            None => Ok(None),
        }
    }
}

/// Returns the same call for an owner that is named: the work may acquire the same lock again.
fn with_owner_named<T>(call: Call<T>) -> Call<T> {
    Call { terms: with_owner(&call.terms), ..call }
}

impl<G: Acquirable> Future for Acquire<G> {
    type Output = Result<G>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<G>> {
        // Without a box, which would take a third of the time of a reentry.
        if let Some(again) = self.0.asked_ref().and_then(G::reenter) {
            self.0 = Stage::Over;
            return Poll::Ready(again);
        }
        self.0.poll(context, |call| Box::pin(G::acquire(call)))
    }
}

impl<G: Acquirable> Future for TryAcquire<G> {
    type Output = Result<Option<G>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<Option<G>>> {
        self.0.poll(context, |(call, max_wait)| Box::pin(G::acquire_within(call, max_wait)))
    }
}

impl<G: Acquirable> fmt::Debug for Acquire<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Acquire").field(&self.0).finish()
    }
}

impl<G: Acquirable> fmt::Debug for TryAcquire<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TryAcquire").field(&self.0).finish()
    }
}
