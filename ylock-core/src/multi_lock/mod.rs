//! Several locks at once: all of them, or none.

mod acquire;
mod attempt;
mod guards;
mod leases;
mod taking;
mod told;
mod two_phase_locking;
mod wanted;

use std::panic::Location;

pub use guards::Guards;
pub use leases::Leases;
pub use two_phase_locking::TwoPhaseLocking;
pub(crate) use two_phase_locking::grow;
pub use wanted::MAX_MEMBERS;

use crate::acquire::Acquire;
use crate::error::Result;
use crate::handle::Handle;
use crate::mode::Mode;
use crate::name::Name;
use crate::options::Options;
use crate::owner::Owner;
use crate::purpose::named;
use crate::terms::Terms;
use wanted::Wanted;

/// Several locks that are acquired at once: all of them, or none.
///
/// Made by [`Ylock::multi_lock`](crate::Ylock::multi_lock), with one call for each lock. The calls may come in any order: every client takes the locks in
/// the order of their keys, so sets never wait for each other in a ring. A lock that is named twice is acquired once, for writing if one of the
/// calls says so. A set of no locks is granted at once.
///
/// # Fairness
/// As with single locks, for each lock. Locks that are free are acquired together, in as many trips to the store as one of them takes.
/// A set that must wait for one of its locks keeps those before it, and none after it, so a set of busy locks holds up others for
/// longer than it works: name as few as you can.
///
/// # Examples
/// ```
/// # use ylock::Ylock;
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
/// let ylock = Ylock::in_memory();
///
/// let set = ylock.multi_lock().write("users", "alice").write("users", "bob").read("rates", "eur").acquire().await?;
/// assert!(set.is_valid() && set.token("users", "alice").is_some());
/// assert!(ylock.lock("users", "bob").write().now().await?.is_none());
/// assert!(set.unlock().await?.is_released());
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[must_use = "it acquires nothing until you call `acquire`"]
pub struct MultiLock {
    terms: Terms,
    wanted: Wanted,
}

impl MultiLock {
    pub(crate) fn new(handle: Handle) -> Self {
        Self { terms: Terms::of(handle), wanted: Wanted::default() }
    }

    /// Returns the same set and one more lock, to be acquired exclusively.
    pub fn write(self, group: impl Name, name: impl Name) -> Self {
        self.and(group, name, Mode::Write)
    }

    /// Returns the same set and one more lock, to be shared with other readers.
    pub fn read(self, group: impl Name, name: impl Name) -> Self {
        self.and(group, name, Mode::Read)
    }

    fn and(mut self, group: impl Name, name: impl Name, mode: Mode) -> Self {
        self.wanted.add(named(group, name), mode);
        self
    }

    /// Returns the same set, always acquired for this owner.
    pub fn owned_by(self, owner: &Owner) -> Self {
        Self { terms: self.terms.owned_by(owner), wanted: self.wanted }
    }

    /// Returns the same set with other options, for all of its locks; what they leave open stays as it is.
    pub fn with_options(self, options: Options) -> Self {
        Self { terms: self.terms.with_options(options), wanted: self.wanted }
    }

    /// Returns the same set with other options, if the engine supports them; see [`Locks::try_with_options`](crate::Locks::try_with_options).
    ///
    /// # Errors
    /// See [`Locks::try_with_options`](crate::Locks::try_with_options).
    pub fn try_with_options(self, options: Options) -> Result<Self> {
        Ok(Self { terms: self.terms.try_with_options(options)?, wanted: self.wanted })
    }

    /// Returns the options of the locks.
    pub fn options(&self) -> &Options {
        self.terms.options()
    }

    /// Acquires all locks, once each of them is free; waits for them in the order of their keys.
    ///
    /// What [`Acquire`] says of one lock holds for each of these. A bounded wait is for all of them together, and `None` says that none is held.
    ///
    /// # Fairness
    /// An owner that waits for a lock holds only locks before it in the order of the keys, so sets that name the same locks wait for each other in
    /// one direction only, and each gets its turn.
    ///
    /// # Reentrancy
    /// Locks that the same owner holds already are granted at once. An owner that holds one of them as a reader and wants to write gets
    /// [`WouldDeadlock`](crate::ErrorKind::WouldDeadlock), and so does an owner that holds one set and wants to wait, in another one, for a lock
    /// before the last of the first: take all at once, or by [`two_phase_locking`](crate::Ylock::two_phase_locking). Single locks that an owner acquires
    /// while it holds a set are not looked at: acquire them in the order of the keys. An owner acquires one set at a time: in a call beside another one
    /// it gets `WouldDeadlock`, too. With [`now`](Acquire::now) it may try locks before the last of a set, because it does not wait.
    ///
    /// # Cancel safety
    /// Dropping the future leaves every queue, gives back what it had, and leaves nothing behind in the store.
    ///
    /// # If the lock is lost
    /// One lock that is lost while others are still waited for is acquired anew, with all the others. Afterwards the set says so:
    /// [`Leases::lost`], [`Leases::is_valid`]. The other locks stay held until the set is dropped. With [`run`](Acquire::run) the work is stopped
    /// and the error names the lock.
    ///
    /// # Errors
    /// Those of [`Acquire`]. The error names the lock that it is about, and nothing is held; [`TimedOut`](crate::ErrorKind::TimedOut) also says how
    /// many were there. [`Invalid`](crate::ErrorKind::Invalid) for more than [`MAX_MEMBERS`] locks.
    ///
    /// # Examples
    /// Money moves between two accounts, and stops moving if one of the locks is lost. It does not matter which of them is named first:
    /// ```
    /// # use ylock::Ylock;
    /// # async fn move_money(_: Option<ylock::Token>) {}
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
    /// let ylock = Ylock::in_memory();
    /// let both = ylock.multi_lock().write("accounts", "bob").write("accounts", "alice");
    /// both.acquire().run(|leases| async move { move_money(leases.token("accounts", "bob")).await }).await?;
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn acquire(&self) -> Acquire<Guards> {
        Acquire::new(&self.terms, self.wanted.in_order(), Location::caller())
    }
}
