//! Several locks at once: all of them, or none.

mod acquire;
mod attempt;
mod growing;
mod guards;
mod leases;
mod taking;
mod told;
mod wanted;

use std::future::Future;
use std::panic::Location;
use std::time::Duration;

pub use growing::Growing;
pub(crate) use growing::grow;
pub use guards::Guards;
pub use leases::Leases;
pub use wanted::MAX_MEMBERS;

use crate::error::Result;
use crate::handle::Handle;
use crate::keeper::Site;
use crate::mode::{Mode, Wait};
use crate::name::Name;
use crate::options::Options;
use crate::owner::Owner;
use crate::purpose::named;
use crate::terms::Terms;
use wanted::Wanted;

/// Several locks that are acquired at once: all of them, or none.
///
/// Made by [`Ylock::many`](crate::Ylock::many), with one call for each lock. The calls may come in any order: every client takes the locks in
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
/// let set = ylock.many().write("users", "alice").write("users", "bob").read("rates", "eur").acquire().await?;
/// assert!(set.is_valid() && set.token("users", "alice").is_some());
/// assert!(ylock.lock("users", "bob").try_write().await?.is_none());
/// assert!(set.unlock().await?.is_released());
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[must_use = "it acquires nothing until you call `acquire`, `try_acquire`, `acquire_within` or `run`"]
pub struct Many {
    terms: Terms,
    wanted: Wanted,
}

impl Many {
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

    /// Acquires all locks; waits, in the order of their keys, for each that is not free.
    ///
    /// # Fairness
    /// As with [`Locks::write`](crate::Locks::write) and [`Locks::read`](crate::Locks::read), for each lock. An owner that waits for a lock holds
    /// only locks before it in the order of the keys, so sets that name the same locks wait for each other in one direction only, and each gets
    /// its turn.
    ///
    /// # Reentrancy
    /// Locks that the same owner holds already are granted at once. An owner that holds one of them as a reader and wants to write gets
    /// [`WouldDeadlock`](crate::ErrorKind::WouldDeadlock), and so does an owner that holds one set and wants to wait, in another one, for a lock
    /// before the last of the first: take all at once, or by [`growing`](crate::Ylock::growing). Single locks that an owner acquires
    /// while it holds a set are not looked at: acquire them in the order of the keys. An owner acquires one set at a time: in a call beside another one
    /// it gets `WouldDeadlock`, too.
    ///
    /// A task that holds one of the locks itself under another owner waits for itself, for ever; after a second the log warns.
    ///
    /// # Cancel safety
    /// Dropping the future leaves every queue, gives back what it had, and leaves nothing behind in the store.
    ///
    /// # If the lock is lost
    /// One lock that is lost while others are still waited for is acquired anew, with all the others. Afterwards the set says so:
    /// [`Leases::lost`], [`Leases::is_valid`]. The other locks stay held until the set is dropped.
    ///
    /// # Errors
    /// - Those of [`Locks::write`](crate::Locks::write). The error names the lock that it is about, and nothing is held.
    /// - [`TimedOut`](crate::ErrorKind::TimedOut): the [wait](Options::with_wait) of the options, which is for all locks together, is over. The
    ///   error names the lock that was waited for, and says how many were there.
    /// - [`Invalid`](crate::ErrorKind::Invalid): more than [`MAX_MEMBERS`] locks.
    ///
    /// # Examples
    /// Money moves between two accounts. It does not matter which of them is named first:
    /// ```
    /// # use ylock::Ylock;
    /// # async fn move_money(_: &str, _: &str) {}
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
    /// let ylock = Ylock::in_memory();
    /// let (from, to) = ("bob", "alice");
    ///
    /// let both = ylock.many().write("accounts", from).write("accounts", to).acquire().await?;
    /// move_money(from, to).await;
    /// if !both.unlock().await?.is_released() {
    ///     eprintln!("one of the locks was lost while money was moved");
    /// }
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn acquire(&self) -> impl Future<Output = Result<Guards>> + use<> {
        let (terms, members, at) = (self.terms.clone(), self.wanted.in_order(), Location::caller());
        async move { acquire::acquire_or_time_out(&terms, &members?, at).await }
    }

    /// Acquires all locks if that is possible now; otherwise returns `None`, and holds none.
    ///
    /// Never waits for another holder, only for the answer of the store.
    ///
    /// # Fairness
    /// As with [`Locks::try_write`](crate::Locks::try_write), for each lock. Of many callers that try sets which overlap perhaps none gets its set.
    ///
    /// # Reentrancy
    /// As with [`acquire`](Self::acquire); but an owner that holds a set may try locks before the last of it, because it does not wait. A task
    /// that holds one of the locks itself under another owner does not wait for itself: it gets `None`.
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
    /// A party books two rooms only if both are free:
    /// ```
    /// # use ylock::Ylock;
    /// # async fn book() {}
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
    /// let ylock = Ylock::in_memory();
    /// match ylock.many().write("rooms", 7).write("rooms", 8).try_acquire().await? {
    ///     Some(_both) => book().await,
    ///     None => println!("one of the rooms is being booked"),
    /// }
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn try_acquire(&self) -> impl Future<Output = Result<Option<Guards>>> + use<> {
        self.acquire_for(Wait::No, Location::caller())
    }

    /// Acquires all locks if their turns come within `time`, which is for all of them together; otherwise returns `None`, and holds none.
    ///
    /// Zero is the same as [`try_acquire`](Self::try_acquire).
    ///
    /// # Fairness
    /// As with [`acquire`](Self::acquire). The place in the queue is lost when the time is over.
    ///
    /// # Reentrancy
    /// As with [`acquire`](Self::acquire). A task that holds one of the locks itself under another owner waits for itself until the time is
    /// over, and gets `None`.
    ///
    /// # Cancel safety
    /// As with [`acquire`](Self::acquire).
    ///
    /// # If the lock is lost
    /// As with [`acquire`](Self::acquire).
    ///
    /// # Errors
    /// Those of [`acquire`](Self::acquire) but `TimedOut`. If the store has been silent when the time ends, the call fails with
    /// [`Unavailable`](crate::ErrorKind::Unavailable), as with [`Locks::write_within`](crate::Locks::write_within).
    ///
    /// # Examples
    /// A letter is edited, unless another user edits it, or its template, for longer than a moment:
    /// ```
    /// # use std::time::Duration;
    /// # use ylock::Ylock;
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
    /// let ylock = Ylock::in_memory();
    /// let pair = ylock.many().write("documents", 7).read("templates", "letter");
    /// let Some(editing) = pair.acquire_within(Duration::from_millis(200)).await? else {
    ///     println!("another user is editing one of them");
    ///     return Ok(());
    /// };
    /// # drop(editing); Ok(()) }
    /// ```
    #[track_caller]
    pub fn acquire_within(&self, time: Duration) -> impl Future<Output = Result<Option<Guards>>> + use<> {
        self.acquire_for(Wait::For(time), Location::caller())
    }

    fn acquire_for(&self, wait: Wait, at: Site) -> impl Future<Output = Result<Option<Guards>>> + use<> {
        let (terms, members) = (self.terms.clone(), self.wanted.in_order());
        async move { acquire::acquire_within(&terms, &members?, wait, at).await }
    }

    /// Runs `work` while holding all locks, and stops it if one of them is lost.
    ///
    /// # Fairness
    /// As with [`acquire`](Self::acquire).
    ///
    /// # Reentrancy
    /// As with [`acquire`](Self::acquire). Inside `work` the owner is current: it may acquire the same locks again. A task that
    /// holds one of them itself under another owner waits for itself, for ever; after a second the log warns.
    ///
    /// # Cancel safety
    /// Dropping the future drops `work` and gives all locks back.
    ///
    /// # If the lock is lost
    /// `work` is dropped, at whatever point it is, and the result is an error of kind [`Lost`](crate::ErrorKind::Lost) that names the lock. What
    /// the work has done stays done.
    ///
    /// # Errors
    /// Those of [`acquire`](Self::acquire), and `Lost`.
    ///
    /// # Examples
    /// Money moves between two accounts, and stops moving if one of the locks is lost:
    /// ```
    /// # use ylock::Ylock;
    /// # async fn move_money(_: Option<ylock::Token>) {}
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
    /// let ylock = Ylock::in_memory();
    /// let both = ylock.many().write("accounts", "alice").write("accounts", "bob");
    /// both.run(|leases| async move { move_money(leases.token("accounts", "bob")).await }).await?;
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn run<W, F>(&self, work: W) -> impl Future<Output = Result<F::Output>> + use<W, F>
    where
        W: FnOnce(Leases) -> F,
        F: Future,
    {
        let (terms, members, at) = (self.terms.clone(), self.wanted.in_order(), Location::caller());
        async move { acquire::run(&terms, &members?, work, at).await }
    }
}
