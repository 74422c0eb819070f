//! Semaphores: at most so many holders at a time, for synchronous code.

use std::ops::Deref;
use std::time::Duration;

use super::guard::within;
use super::outside::Outside;
use super::tied::Tied;

use crate::{LossReason, Options, PermitLease, Result, Unlocked};

/// A semaphore: at most a given number of holders at a time, over all processes; as [`ylock::Semaphore`](crate::Semaphore).
///
/// # Examples
/// No more than two reports are rendered at a time, on whatever machines:
/// ```
/// # use ylock::blocking::Ylock;
/// # fn render() {}
/// # fn main() -> ylock::Result<()> {
/// let rendering = Ylock::in_memory().locks("reports").semaphore("render", 2);
///
/// let (first, second) = (rendering.acquire()?, rendering.acquire()?);
/// assert!(rendering.try_acquire()?.is_none());
/// render();
/// # drop((first, second)); Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[must_use = "it acquires nothing until you call `acquire`, `try_acquire`, `acquire_within` or `run`"]
pub struct Semaphore(Tied<crate::Semaphore>);

impl Semaphore {
    pub(super) fn new(semaphore: Tied<crate::Semaphore>) -> Self {
        Self(semaphore)
    }

    /// Returns how many permits there are.
    pub fn permits(&self) -> u32 {
        self.0.value.permits()
    }

    /// Returns the same semaphore with other options; what they leave open stays as it is.
    pub fn with_options(&self, options: Options) -> Self {
        Self(self.0.tie(self.0.value.with_options(options)))
    }

    /// Returns the same semaphore with other options, if the engine supports them.
    ///
    /// # Errors
    /// As [`ylock::Locks::try_with_options`](crate::Locks::try_with_options).
    pub fn try_with_options(&self, options: Options) -> Result<Self> {
        Ok(Self(self.0.tie(self.0.value.try_with_options(options)?)))
    }

    /// Acquires a permit; waits while as many as there are are held.
    ///
    /// # Fairness
    /// As with [`ylock::Semaphore::acquire`](crate::Semaphore::acquire).
    ///
    /// # Reentrancy
    /// None: each call takes another permit. A thread that holds a permit and waits for one more may wait for itself.
    ///
    /// # Cancel safety
    /// Nothing can be cancelled: to wait for a limited time use [`acquire_within`](Self::acquire_within), or the [wait](Options::with_wait) of the
    /// options.
    ///
    /// # If the lock is lost
    /// The permit says so: [`PermitLease::is_valid`], [`Permit::wait_lost`]. Then another holder may get it.
    ///
    /// # Errors
    /// As [`ylock::Semaphore::acquire`](crate::Semaphore::acquire); also [`Invalid`](crate::ErrorKind::Invalid) inside an async runtime.
    ///
    /// # Examples
    /// ```
    /// # use ylock::blocking::Ylock;
    /// # fn render() {}
    /// # fn main() -> ylock::Result<()> {
    /// let rendering = Ylock::in_memory().locks("reports").semaphore("render", 2);
    ///
    /// let permit = rendering.acquire()?;
    /// render();
    /// if !permit.unlock()?.is_released() {
    ///     eprintln!("for a while perhaps more than two reports were rendered");
    /// }
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn acquire(&self) -> Result<Permit> {
        self.0.acquire(self.0.value.acquire()).map(Permit)
    }

    /// Acquires a permit if one is free now; otherwise returns `None`.
    ///
    /// # Fairness
    /// As with [`ylock::Semaphore::try_acquire`](crate::Semaphore::try_acquire).
    ///
    /// # Reentrancy
    /// None: each call takes another permit.
    ///
    /// # Cancel safety
    /// Nothing can be cancelled; it waits for the answer of the store only.
    ///
    /// # If the lock is lost
    /// As with [`acquire`](Self::acquire).
    ///
    /// # Errors
    /// As [`ylock::Semaphore::try_acquire`](crate::Semaphore::try_acquire); also [`Invalid`](crate::ErrorKind::Invalid) inside an async runtime.
    ///
    /// # Examples
    /// A request is answered by 503 when ten others are being worked on:
    /// ```
    /// # use ylock::blocking::Ylock;
    /// # fn answer() -> u16 { 200 }
    /// fn handle(ylock: &Ylock) -> ylock::Result<u16> {
    ///     match ylock.locks("api").semaphore("search", 10).try_acquire()? {
    ///         Some(_permit) => Ok(answer()),
    ///         None => Ok(503),
    ///     }
    /// }
    /// # fn main() { assert_eq!(handle(&Ylock::in_memory()).unwrap(), 200) }
    /// ```
    #[track_caller]
    pub fn try_acquire(&self) -> Result<Option<Permit>> {
        Ok(self.0.try_acquire(self.0.value.try_acquire())?.map(Permit))
    }

    /// Acquires a permit if one becomes free within `time`; otherwise returns `None`. Zero is the same as [`try_acquire`](Self::try_acquire).
    ///
    /// # Fairness
    /// As with [`ylock::Semaphore::acquire_within`](crate::Semaphore::acquire_within).
    ///
    /// # Reentrancy
    /// None: each call takes another permit. A thread that holds a permit may wait for itself, until the time is over.
    ///
    /// # Cancel safety
    /// Nothing can be cancelled; the wait ends with the time.
    ///
    /// # If the lock is lost
    /// As with [`acquire`](Self::acquire).
    ///
    /// # Errors
    /// As [`ylock::Semaphore::acquire_within`](crate::Semaphore::acquire_within); also [`Invalid`](crate::ErrorKind::Invalid) inside an async
    /// runtime.
    ///
    /// # Examples
    /// A report is rendered if its turn comes soon; otherwise the old one is shown:
    /// ```
    /// # use std::time::Duration;
    /// # use ylock::blocking::Ylock;
    /// # fn render() {}
    /// # fn main() -> ylock::Result<()> {
    /// let rendering = Ylock::in_memory().locks("reports").semaphore("render", 2);
    /// match rendering.acquire_within(Duration::from_secs(2))? {
    ///     Some(_permit) => render(),
    ///     None => println!("shown as it was"),
    /// }
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn acquire_within(&self, time: Duration) -> Result<Option<Permit>> {
        Ok(self.0.try_acquire(self.0.value.acquire_within(time))?.map(Permit))
    }

    /// Runs `work` with a permit, on the thread of the caller.
    ///
    /// # Fairness
    /// As with [`acquire`](Self::acquire).
    ///
    /// # Reentrancy
    /// None: `work` that takes a permit takes another one, and may wait for itself.
    ///
    /// # Cancel safety
    /// Nothing can be cancelled; the [wait](Options::with_wait) of the options bounds the wait for the permit.
    ///
    /// # If the lock is lost
    /// `work` goes on to its end: it may ask [`PermitLease::check`] between its steps. Then the result is an error of kind
    /// [`Lost`](crate::ErrorKind::Lost). What the work has done stays done.
    ///
    /// # Errors
    /// Those of [`acquire`](Self::acquire), and `Lost`.
    ///
    /// # Examples
    /// ```
    /// # use ylock::blocking::Ylock;
    /// # fn render() {}
    /// # fn main() -> ylock::Result<()> {
    /// let rendering = Ylock::in_memory().locks("reports").semaphore("render", 2);
    /// rendering.run(|_permit| render())?;
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn run<T>(&self, work: impl FnOnce(PermitLease) -> T) -> Result<T> {
        let outside = Outside::new();
        self.0.work(self.0.value.run(|permit| outside.call(move || work(permit))), &outside)
    }
}

/// A permit of a [`Semaphore`] that is held; as [`ylock::Permit`](crate::Permit). Dropping it gives it back, in the background.
///
/// Everything that can be asked about it is on [`PermitLease`], to which it dereferences.
#[must_use = "the permit is given back as soon as it is dropped: keep it in a variable while you work, or use `run`"]
#[derive(Debug)]
pub struct Permit(Tied<crate::Permit>);

impl Permit {
    /// Returns a view of this permit, to pass around.
    pub fn lease(&self) -> PermitLease {
        self.0.value.lease()
    }

    /// Gives the permit back and waits until the store has it; as [`ylock::Permit::unlock`](crate::Permit::unlock).
    ///
    /// # Errors
    /// As [`ylock::Permit::unlock`](crate::Permit::unlock); also [`Invalid`](crate::ErrorKind::Invalid) inside an async runtime: then the permit is
    /// given back in the background.
    pub fn unlock(self) -> Result<Unlocked> {
        self.0.finish(crate::Permit::unlock)
    }

    /// Waits until the permit is lost, but at most this long, and returns why it was; `None` if it is held when the time is over.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) inside an async runtime.
    pub fn wait_lost(&self, time: Duration) -> Result<Option<LossReason>> {
        self.0.wait(within(time, self.0.value.lost()))
    }
}

impl Deref for Permit {
    type Target = PermitLease;

    fn deref(&self) -> &PermitLease {
        &self.0.value
    }
}
