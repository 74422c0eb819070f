//! Semaphores: at most so many holders at a time, over all processes.

mod inspect;
mod keys;
mod permit;
mod taking;

use std::future::Future;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

pub use inspect::SemaphoreInspection;
pub(crate) use inspect::{inspect, is_in_use, revoke, revoke_some};
pub use permit::{Permit, PermitLease};

use crate::acquire::{acquisition, layers_over, tell};
use crate::deadline::Deadline;
use crate::error::{Error, ErrorKind, Result};
use crate::keeper::Site;
use crate::key::Key;
use crate::layer::Outcome;
use crate::mode::{Mode, Wait};
use crate::options::Options;
use crate::owner::Owner;
use crate::terms::Terms;
use keys::Keys;
use taking::{Taken, Taking};

/// A semaphore: at most a given number of holders at a time, over all processes. Each holder has a [`Permit`].
///
/// Made by [`Locks::semaphore`](crate::Locks::semaphore). A permit is a lease, as a lock is: it is renewed while it is held, and may be lost.
///
/// [`Ylock::inspect_semaphore`](crate::Ylock::inspect_semaphore) shows the holders of permits and the waiters, and
/// [`Ylock::revoke_semaphore`](crate::Ylock::revoke_semaphore) takes all permits away.
///
/// # Names
/// A semaphore and a lock of the same name have nothing to do with each other.
///
/// All clients must name the same number of permits. While a client has a permit or waits for one, calls that name another number fail with
/// [`Invalid`](crate::ErrorKind::Invalid); the error names that client and both numbers.
///
/// # Fairness
/// Calls that wait get permits in the order in which waiters get a lock with these [options](crate::Locks::with_options). By default that is the
/// order in which they came within a process, and processes in the order in which they joined the queue; [`Strict`](crate::Fairness::Strict) makes it
/// one order over all processes, which costs more requests the more clients wait. A call that only tries may overtake waiting ones in the moment in which
/// one of them has been served and the next has not looked yet.
///
/// # Reentrancy
/// None: each call takes another permit, for whatever owner. A task that holds a permit and waits for one more may wait for itself.
///
/// # Examples
/// No more than two reports are rendered at a time, on whatever machines:
/// ```
/// # use ylock::Ylock;
/// # async fn render() {}
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
/// let rendering = Ylock::in_memory().locks("reports").semaphore("render", 2);
///
/// let first = rendering.acquire().await?;
/// let second = rendering.acquire().await?;
/// assert_ne!(first.number(), second.number());
/// assert!(rendering.try_acquire().await?.is_none());
/// render().await;
/// # drop((first, second)); Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[must_use = "it acquires nothing until you call `acquire`, `try_acquire`, `acquire_within` or `run`"]
pub struct Semaphore {
    terms: Terms,
    /// The name, or what is wrong with it. That is reported by the first acquisition.
    name: Result<Key>,
    permits: u32,
}

impl Semaphore {
    pub(crate) fn new(terms: Terms, name: Result<Key>, permits: u32) -> Self {
        Self { terms, name, permits }
    }

    /// Returns how many permits there are.
    pub fn permits(&self) -> u32 {
        self.permits
    }

    /// Returns the same semaphore with other options; what they leave open stays as it is.
    pub fn with_options(&self, options: Options) -> Self {
        Self { terms: self.terms.with_options(options), name: self.name.clone(), permits: self.permits }
    }

    /// Returns the same semaphore with other options, if the engine supports them; see
    /// [`Locks::try_with_options`](crate::Locks::try_with_options).
    ///
    /// # Errors
    /// See [`Locks::try_with_options`](crate::Locks::try_with_options).
    pub fn try_with_options(&self, options: Options) -> Result<Self> {
        Ok(Self {
            terms: self.terms.try_with_options(options)?,
            name: self.name.clone(),
            permits: self.permits,
        })
    }

    /// Acquires a permit; waits while as many as there are are held.
    ///
    /// # Fairness
    /// As with [`Locks::write`](crate::Locks::write); see [`Semaphore`].
    ///
    /// # Reentrancy
    /// None: each call takes another permit. A task that holds a permit and waits for one more waits for itself, if no other holder leaves.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the queue, gives back what it had, and leaves nothing behind in the store.
    ///
    /// # If the lock is lost
    /// The permit says so: [`PermitLease::lost`], [`PermitLease::is_valid`]. Then another holder may get it.
    ///
    /// # Errors
    /// - [`Invalid`](crate::ErrorKind::Invalid): the name is empty, too long or that of a part of another semaphore; the number of permits is none or
    ///   above [`MAX_PERMITS`](crate::MAX_PERMITS); or another call names another number.
    /// - [`Unsupported`](crate::ErrorKind::Unsupported): the engine has no shared reads (Cassandra's by shadow rows).
    /// - [`TimedOut`](crate::ErrorKind::TimedOut): the [wait](Options::with_wait) of the options is over.
    /// - [`Unavailable`](crate::ErrorKind::Unavailable), [`Indeterminate`](crate::ErrorKind::Indeterminate): the store did not answer for one
    ///   lease.
    ///
    /// # Examples
    /// ```
    /// # use ylock::Ylock;
    /// # async fn render() {}
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
    /// let rendering = Ylock::in_memory().locks("reports").semaphore("render", 2);
    ///
    /// let permit = rendering.acquire().await?;
    /// render().await;
    /// if !permit.unlock().await?.is_released() {
    ///     eprintln!("for a while perhaps more than two reports were rendered");
    /// }
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn acquire(&self) -> impl Future<Output = Result<Permit>> + use<> {
        let (semaphore, at) = (self.clone(), Location::caller());
        async move { semaphore.acquire_or_time_out(at).await }
    }

    /// Acquires a permit if one is free now; otherwise returns `None`.
    ///
    /// Never waits for another holder, only for the answer of the store. `None` says that the call has seen each permit held or waited for at some moment,
    /// not that all were at once: a holder that gives one permit back and takes another one meanwhile may be seen at both.
    ///
    /// # Fairness
    /// See [`Semaphore`].
    ///
    /// # Reentrancy
    /// None: each call takes another permit. A task never waits for itself here.
    ///
    /// # Cancel safety
    /// As with [`acquire`](Self::acquire).
    ///
    /// # If the lock is lost
    /// As with [`acquire`](Self::acquire).
    ///
    /// # Errors
    /// Those of [`acquire`](Self::acquire) but `TimedOut`. While the store does not answer, the call fails with
    /// [`Unavailable`](crate::ErrorKind::Unavailable) after one request timeout of the engine.
    ///
    /// # Examples
    /// A request is answered by 503 when ten others are being worked on:
    /// ```
    /// # use ylock::Ylock;
    /// # async fn answer() -> u16 { 200 }
    /// # async fn handle(ylock: &Ylock) -> ylock::Result<u16> {
    /// match ylock.locks("api").semaphore("search", 10).try_acquire().await? {
    ///     Some(_permit) => Ok(answer().await),
    ///     None => Ok(503),
    /// }
    /// # }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() { assert_eq!(handle(&Ylock::in_memory()).await.unwrap(), 200) }
    /// ```
    #[track_caller]
    pub fn try_acquire(&self) -> impl Future<Output = Result<Option<Permit>>> + use<> {
        let (semaphore, at) = (self.clone(), Location::caller());
        async move { semaphore.acquire_for(Wait::No, at).await }
    }

    /// Acquires a permit if one becomes free within `time`; otherwise returns `None`. Zero is the same as [`try_acquire`](Self::try_acquire).
    ///
    /// # Fairness
    /// As with [`acquire`](Self::acquire). The place in the queue is lost when the time is over.
    ///
    /// # Reentrancy
    /// None: each call takes another permit. A task that holds a permit may wait for itself, until the time is over.
    ///
    /// # Cancel safety
    /// As with [`acquire`](Self::acquire).
    ///
    /// # If the lock is lost
    /// As with [`acquire`](Self::acquire).
    ///
    /// # Errors
    /// Those of [`acquire`](Self::acquire) but `TimedOut`. If the store has not answered when the time is over, the error is
    /// [`Unavailable`](crate::ErrorKind::Unavailable).
    ///
    /// # Examples
    /// A report is rendered if its turn comes soon; otherwise the old one is shown:
    /// ```
    /// # use std::time::Duration;
    /// # use ylock::Ylock;
    /// # async fn render() {}
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
    /// let rendering = Ylock::in_memory().locks("reports").semaphore("render", 2);
    /// match rendering.acquire_within(Duration::from_secs(2)).await? {
    ///     Some(_permit) => render().await,
    ///     None => println!("shown as it was"),
    /// }
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn acquire_within(&self, time: Duration) -> impl Future<Output = Result<Option<Permit>>> + use<> {
        let (semaphore, at) = (self.clone(), Location::caller());
        async move { semaphore.acquire_for(Wait::For(time), at).await }
    }

    /// Runs `work` with a permit, and stops it if the permit is lost.
    ///
    /// # Fairness
    /// As with [`acquire`](Self::acquire).
    ///
    /// # Reentrancy
    /// None: `work` that takes a permit takes another one, and may wait for itself.
    ///
    /// # Cancel safety
    /// Dropping the future drops `work` and gives the permit back.
    ///
    /// # If the lock is lost
    /// `work` is dropped, at whatever point it is, and the result is an error of kind [`Lost`](crate::ErrorKind::Lost). What the work has done
    /// stays done.
    ///
    /// # Errors
    /// Those of [`acquire`](Self::acquire), and `Lost`.
    ///
    /// # Examples
    /// ```
    /// # use ylock::Ylock;
    /// # async fn render() {}
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
    /// let rendering = Ylock::in_memory().locks("reports").semaphore("render", 2);
    /// rendering.run(|_permit| render()).await?;
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn run<W, F>(&self, work: W) -> impl Future<Output = Result<F::Output>> + use<W, F>
    where
        W: FnOnce(PermitLease) -> F,
        F: Future,
    {
        let (semaphore, at) = (self.clone(), Location::caller());
        async move {
            let permit = semaphore.acquire_or_time_out(at).await?;
            permit.run(work).await
        }
    }

    async fn acquire_or_time_out(&self, at: Site) -> Result<Permit> {
        let wait = self.terms.options().wait();
        let acquired = self.acquire_for(wait, at).await?;
        acquired.ok_or_else(|| {
            let message = format!(
                "none of the {} permits was granted within the wait of the options, {wait:?}",
                self.permits
            );
            let error = Error::new(ErrorKind::TimedOut, message);
            match &self.name {
                Ok(name) => error.with_key(name),
                Err(_) => error,
            }
        })
    }

    async fn acquire_for(&self, wait: Wait, at: Site) -> Result<Option<Permit>> {
        let (terms, keys) = (&self.terms, Keys::of(self.name.clone()?, self.permits)?);
        let engine = terms.handle.keeper.engine();
        if !engine.guarantees().shared_reads {
            let message = "a semaphore needs an engine whose readers share a lock";
            return Err(Error::new(ErrorKind::Unsupported, message).with_engine(engine.name()));
        }
        let deadline = Deadline::of(wait, &**terms.handle.keeper.environment());
        terms.options().check().map_err(|error| error.with_key(&keys.name))?;
        let unbounded = unbounded(&terms.handle.options);
        let taking = Taking { terms, keys: &keys, deadline, unbounded, at };
        let layers = layers_over(terms);
        if layers.is_empty() {
            return Ok(taking.take().await?.map(|taken| taken.into_permit(|guard| guard)));
        }
        // Of all locks that a permit is made of the layers are told as of one, which it shares with the other holders.
        let owner = Owner::drawn_from(&**terms.handle.keeper.environment());
        let mut acquisition = acquisition(terms, &keys.name, Mode::Read, owner, wait);
        acquisition.permits = Some(keys.count());
        let told = tell(terms, layers, acquisition, taking.take(), outcome).await?;
        Ok(told.map(|(taken, told)| taken.into_permit(|guard| told.watch(guard))))
    }
}

/// Returns the same options without a bound on holds.
fn unbounded(options: &Arc<Options>) -> Arc<Options> {
    match options.max_hold() {
        None => Arc::clone(options),
        Some(_) => Arc::new(Options::clone(options).without_max_hold()),
    }
}

fn outcome(taken: &Taken) -> Outcome {
    Outcome::Granted { waited: taken.waited }
}
