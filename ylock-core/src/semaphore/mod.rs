//! Semaphores: at most so many holders at a time, over all processes.

mod inspect;
mod keys;
mod permit;
mod taking;

use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

pub use inspect::SemaphoreInspection;
pub(crate) use inspect::{inspect, is_in_use, revoke, revoke_some};
pub use permit::{Permit, PermitLease};

use crate::acquire::{Acquirable, Acquire, Call, acquisition, layers_over, tell};
use crate::deadline::{Deadline, timed_out};
use crate::error::{Error, ErrorKind, Result};
use crate::key::Key;
use crate::layer::Outcome;
use crate::mode::Mode;
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
/// assert!(rendering.acquire().now().await?.is_none());
/// render().await;
/// # drop((first, second)); Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[must_use = "it acquires nothing until you call `acquire`"]
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

    /// Acquires a permit, once one is free.
    ///
    /// See [`Acquire`], which has also the try, the bounded wait and work; and [`Semaphore`] for what is different from a lock. With
    /// [`now`](Acquire::now), `None` says that the call has seen each permit held or waited for at some moment, not that all were at once: a holder
    /// that gives one permit back and takes another one meanwhile may be seen at both.
    ///
    /// # Errors
    /// Those of [`Acquire`], and:
    /// - [`Invalid`](crate::ErrorKind::Invalid): the name is empty, too long or that of a part of another semaphore; the number of permits is none or
    ///   above [`MAX_PERMITS`](crate::MAX_PERMITS); or another call names another number.
    /// - [`Unsupported`](crate::ErrorKind::Unsupported): the engine has no shared reads (Cassandra's by shadow rows).
    ///
    /// # Examples
    /// A request is answered by 503 when ten others are being worked on:
    /// ```
    /// # use ylock::Ylock;
    /// # async fn answer() -> u16 { 200 }
    /// # async fn handle(ylock: &Ylock) -> ylock::Result<u16> {
    /// let searching = ylock.locks("api").semaphore("search", 10);
    /// let answered = searching.acquire().now().run(|_| answer()).await?;
    /// Ok(answered.unwrap_or(503))
    /// # }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() { assert_eq!(handle(&Ylock::in_memory()).await.unwrap(), 200) }
    /// ```
    #[track_caller]
    pub fn acquire(&self) -> Acquire<Permit> {
        let target = PermitTarget { name: self.name.clone(), permits: self.permits };
        Acquire::new(&self.terms, target, Location::caller())
    }
}

/// One permit, as it is wanted.
#[derive(Debug)]
pub struct PermitTarget {
    name: Result<Key>,
    permits: u32,
}

impl Acquirable for Permit {
    type Target = PermitTarget;
    type Lease = PermitLease;

    async fn acquire(call: Call<PermitTarget>) -> Result<Self> {
        let max_wait = call.terms.options().max_wait();
        acquire_within(&call, max_wait).await?.ok_or_else(|| {
            let permits = call.target.permits;
            let message = timed_out(&format!("none of the {permits} permits was granted"), max_wait);
            let error = Error::new(ErrorKind::TimedOut, message);
            match &call.target.name {
                Ok(name) => error.with_key(name),
                Err(_) => error,
            }
        })
    }

    async fn acquire_within(call: Call<PermitTarget>, max_wait: Option<Duration>) -> Result<Option<Self>> {
        acquire_within(&call, max_wait).await
    }

    fn work_owner(_: &Terms) -> Option<Owner> {
        None
    }

    fn work_lease(&self) -> PermitLease {
        self.lease()
    }

    async fn until_lost(&self) -> Error {
        self.lost().await;
        self.error()
    }

    fn check_valid(&self) -> Result<()> {
        self.check()
    }

    async fn give_back(self, _: &Terms) {
        permit::give_back(self).await;
    }
}

async fn acquire_within(call: &Call<PermitTarget>, max_wait: Option<Duration>) -> Result<Option<Permit>> {
    let Call { terms, target, at } = call;
    let keys = Keys::of(target.name.clone()?, target.permits)?;
    let engine = terms.handle.keeper.engine();
    if !engine.guarantees().shared_reads {
        let message = "a semaphore needs an engine whose readers share a lock";
        return Err(Error::new(ErrorKind::Unsupported, message).with_engine(engine.name()));
    }
    let deadline = Deadline::of(max_wait, &**terms.handle.keeper.environment());
    terms.options().check().map_err(|error| error.with_key(&keys.name))?;
    let unbounded = unbounded(&terms.handle.options);
    let taking = Taking { terms, keys: &keys, deadline, unbounded, at };
    let layers = layers_over(terms);
    if layers.is_empty() {
        return Ok(taking.take().await?.map(|taken| taken.into_permit(|guard| guard)));
    }
    // Of all locks that a permit is made of the layers are told as of one, which it shares with the other holders.
    let owner = Owner::drawn_from(&**terms.handle.keeper.environment());
    let mut acquisition = acquisition(terms, &keys.name, Mode::Read, owner, max_wait);
    acquisition.permits = Some(keys.count());
    let told = tell(terms, layers, acquisition, taking.take(), outcome).await?;
    Ok(told.map(|(taken, told)| taken.into_permit(|guard| told.watch(guard))))
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
