//! Several locks at once, for synchronous code.

use std::time::Duration;

use super::guards::Guards;
use super::outside::Outside;
use super::tied::Tied;
use crate::{Leases, Name, Options, Owner, Result};

/// Several locks that are acquired at once: all of them, or none; as [`ylock::Many`](crate::Many).
///
/// # Examples
/// ```
/// # use ylock::blocking::Ylock;
/// # fn main() -> ylock::Result<()> {
/// let ylock = Ylock::in_memory();
///
/// let set = ylock.many().write("users", "alice").write("users", "bob").read("rates", "eur").acquire()?;
/// assert!(set.is_valid() && set.token("users", "alice").is_some());
/// assert!(ylock.lock("users", "bob").try_write()?.is_none());
/// assert!(set.unlock()?.is_released());
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[must_use = "it acquires nothing until you call `acquire`, `try_acquire`, `acquire_within` or `run`"]
pub struct Many(Tied<crate::Many>);

impl Many {
    pub(super) fn new(many: Tied<crate::Many>) -> Self {
        Self(many)
    }

    /// Returns the same set and one more lock, to be acquired exclusively.
    pub fn write(self, group: impl Name, name: impl Name) -> Self {
        Self(self.0.map(|many| many.write(group, name)))
    }

    /// Returns the same set and one more lock, to be shared with other readers.
    pub fn read(self, group: impl Name, name: impl Name) -> Self {
        Self(self.0.map(|many| many.read(group, name)))
    }

    /// Returns the same set, always acquired for this owner.
    pub fn owned_by(self, owner: &Owner) -> Self {
        Self(self.0.map(|many| many.owned_by(owner)))
    }

    /// Returns the same set with other options, for all of its locks; what they leave open stays as it is.
    pub fn with_options(self, options: Options) -> Self {
        Self(self.0.map(|many| many.with_options(options)))
    }

    /// Returns the same set with other options, if the engine supports them.
    ///
    /// # Errors
    /// As [`ylock::Locks::try_with_options`](crate::Locks::try_with_options).
    pub fn try_with_options(self, options: Options) -> Result<Self> {
        let many = self.0.value.clone().try_with_options(options)?;
        Ok(Self(self.0.tie(many)))
    }

    /// Returns the options of the locks.
    pub fn options(&self) -> &Options {
        self.0.value.options()
    }

    /// Acquires all locks; waits, in the order of their keys, for each that is not free.
    ///
    /// # Fairness
    /// As with [`ylock::Many::acquire`](crate::Many::acquire).
    ///
    /// # Reentrancy
    /// As with [`ylock::Many::acquire`](crate::Many::acquire); a thread that holds one of the locks itself under another owner waits for itself, for
    /// ever.
    ///
    /// # Cancel safety
    /// Nothing can be cancelled: to wait for a limited time use [`acquire_within`](Self::acquire_within), or the [wait](Options::with_wait) of the
    /// options.
    ///
    /// # If the lock is lost
    /// The set says so: [`Leases::is_valid`], [`Guards::wait_lost`]. The other locks stay held until the set is dropped.
    ///
    /// # Errors
    /// As [`ylock::Many::acquire`](crate::Many::acquire); also [`Invalid`](crate::ErrorKind::Invalid) inside an async runtime.
    ///
    /// # Examples
    /// Money moves between two accounts. It does not matter which of them is named first:
    /// ```
    /// # use ylock::blocking::Ylock;
    /// # fn move_money(_: &str, _: &str) {}
    /// # fn main() -> ylock::Result<()> {
    /// let ylock = Ylock::in_memory();
    /// let (from, to) = ("bob", "alice");
    ///
    /// let both = ylock.many().write("accounts", from).write("accounts", to).acquire()?;
    /// move_money(from, to);
    /// if !both.unlock()?.is_released() {
    ///     eprintln!("one of the locks was lost while money was moved");
    /// }
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn acquire(&self) -> Result<Guards> {
        self.0.acquire(self.0.value.acquire()).map(Guards::new)
    }

    /// Acquires all locks if that is possible now; otherwise returns `None`, and holds none.
    ///
    /// # Fairness
    /// As with [`ylock::Many::try_acquire`](crate::Many::try_acquire).
    ///
    /// # Reentrancy
    /// As with [`ylock::Many::try_acquire`](crate::Many::try_acquire).
    ///
    /// # Cancel safety
    /// Nothing can be cancelled; it waits for the answer of the store only.
    ///
    /// # If the lock is lost
    /// As with [`acquire`](Self::acquire).
    ///
    /// # Errors
    /// As [`ylock::Many::try_acquire`](crate::Many::try_acquire); also [`Invalid`](crate::ErrorKind::Invalid) inside an async runtime.
    ///
    /// # Examples
    /// A party books two rooms only if both are free:
    /// ```
    /// # use ylock::blocking::Ylock;
    /// # fn book() {}
    /// # fn main() -> ylock::Result<()> {
    /// match Ylock::in_memory().many().write("rooms", 7).write("rooms", 8).try_acquire()? {
    ///     Some(_both) => book(),
    ///     None => println!("one of the rooms is being booked"),
    /// }
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn try_acquire(&self) -> Result<Option<Guards>> {
        Ok(self.0.try_acquire(self.0.value.try_acquire())?.map(Guards::new))
    }

    /// Acquires all locks if their turns come within `time`, which is for all of them together; otherwise returns `None`, and holds none.
    ///
    /// # Fairness
    /// As with [`ylock::Many::acquire_within`](crate::Many::acquire_within).
    ///
    /// # Reentrancy
    /// As with [`ylock::Many::acquire_within`](crate::Many::acquire_within).
    ///
    /// # Cancel safety
    /// Nothing can be cancelled; the wait ends with the time.
    ///
    /// # If the lock is lost
    /// As with [`acquire`](Self::acquire).
    ///
    /// # Errors
    /// As [`ylock::Many::acquire_within`](crate::Many::acquire_within); also [`Invalid`](crate::ErrorKind::Invalid) inside an async runtime.
    ///
    /// # Examples
    /// A letter is edited, unless another user edits it, or its template, for longer than a moment:
    /// ```
    /// # use std::time::Duration;
    /// # use ylock::blocking::Ylock;
    /// # fn main() -> ylock::Result<()> {
    /// let ylock = Ylock::in_memory();
    /// let pair = ylock.many().write("documents", 7).read("templates", "letter");
    /// let Some(editing) = pair.acquire_within(Duration::from_millis(200))? else {
    ///     println!("another user is editing one of them");
    ///     return Ok(());
    /// };
    /// # drop(editing); Ok(()) }
    /// ```
    #[track_caller]
    pub fn acquire_within(&self, time: Duration) -> Result<Option<Guards>> {
        Ok(self.0.try_acquire(self.0.value.acquire_within(time))?.map(Guards::new))
    }

    /// Runs `work` while holding all locks, on the thread of the caller.
    ///
    /// # Fairness
    /// As with [`acquire`](Self::acquire).
    ///
    /// # Reentrancy
    /// As with [`acquire`](Self::acquire). Inside `work` the owner is current: it may acquire the same locks again.
    ///
    /// # Cancel safety
    /// Nothing can be cancelled; the [wait](Options::with_wait) of the options bounds the wait for the locks.
    ///
    /// # If the lock is lost
    /// `work` goes on to its end: it may ask [`Leases::check`] between its steps. Then the result is an error of kind
    /// [`Lost`](crate::ErrorKind::Lost) that names the lock, and the output of the work is dropped. What the work has done stays done.
    ///
    /// # Errors
    /// Those of [`acquire`](Self::acquire), and `Lost`.
    ///
    /// # Examples
    /// Money moves between two accounts:
    /// ```
    /// # use ylock::blocking::Ylock;
    /// # fn move_money(_: Option<ylock::Token>) {}
    /// # fn main() -> ylock::Result<()> {
    /// let both = Ylock::in_memory().many().write("accounts", "alice").write("accounts", "bob");
    /// both.run(|leases| move_money(leases.token("accounts", "bob")))?;
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn run<T>(&self, work: impl FnOnce(Leases) -> T) -> Result<T> {
        let outside = Outside::new();
        self.0.work(self.0.value.run(|leases| outside.call(move || work(leases))), &outside)
    }
}
