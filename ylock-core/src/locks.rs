//! Fine-grained locks: names in a group.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use crate::acquire::{acquire, acquire_or_time_out, run, run_after};
use crate::client::Ylock;
use crate::error::Result;
use crate::guard::Guard;
use crate::key::Key;
use crate::lease::Lease;
use crate::lock::Lock;
use crate::mode::{Mode, Wait};
use crate::name::Name;
use crate::options::Options;
use crate::owner::Owner;

/// The locks of one group, each with a name: users, orders, files.
///
/// Cheap to clone, and free to make: nothing is kept for a name that is not in use.
///
/// # Fairness
/// Within a process first come, first served; a reader that comes after a waiting writer stays behind it.
/// Between processes see [`Fairness`](crate::Fairness).
///
/// # Examples
/// ```
/// # use ylock::{Unlocked, Ylock};
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
/// let users = Ylock::in_memory().locks("users");
///
/// let alice = users.write("alice").await?;
/// assert!(users.try_read("alice").await?.is_none());
/// let bob = users.write("bob").await?; // another name: no conflict
/// assert_eq!(alice.unlock().await?, Unlocked::Released);
/// # drop(bob); Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Locks {
    pub(crate) client: Ylock,
    pub(crate) options: Arc<Options>,
    pub(crate) owner: Option<Owner>,
    group: Arc<str>,
}

impl Locks {
    pub(crate) fn new(client: Ylock, group: Arc<str>) -> Self {
        let options = Arc::clone(client.shared_options());
        Self { client, options, owner: None, group }
    }

    /// Returns the group: what these locks are for.
    pub fn group(&self) -> &str {
        &self.group
    }

    /// Returns the same locks, always acquired for this owner, whatever scope the caller is in.
    #[must_use]
    pub fn owned_by(&self, owner: &Owner) -> Self {
        Self { owner: Some(*owner), ..self.clone() }
    }

    /// Returns the same locks with other options; what they leave open stays as it is. Bad options are reported by the first acquisition;
    /// [`try_with_options`](Self::try_with_options) reports them at once.
    #[must_use]
    pub fn with_options(&self, options: Options) -> Self {
        Self { options: Arc::new(options.over(&self.options)), ..self.clone() }
    }

    /// Returns the same locks with other options; what they leave open stays as it is. Fails at once, and not at the first acquisition, if
    /// the engine does not support them, such as a lease that is too short for its request timeout.
    ///
    /// The in-memory engine supports every lease from 100 ms to 24 h, also those that an engine over a network does not support.
    ///
    /// # Errors
    /// [`Config`](crate::ErrorKind::Config) that names the limit and what to change.
    ///
    /// # Examples
    /// ```
    /// # use std::time::Duration;
    /// # use ylock::{Options, Ylock};
    /// # fn main() -> ylock::Result<()> {
    /// let reports = Ylock::in_memory().locks("reports");
    /// let long = reports.try_with_options(Options::default().with_lease(Duration::from_secs(60)))?;
    /// assert!(reports.try_with_options(Options::default().with_lease(Duration::from_millis(1))).is_err());
    /// # assert_eq!(long.options().lease(), Duration::from_secs(60)); Ok(()) }
    /// ```
    pub fn try_with_options(&self, options: Options) -> Result<Self> {
        let options = options.checked_over(&self.options, &**self.client.keeper.engine())?;
        Ok(Self { options: Arc::new(options), ..self.clone() })
    }

    /// Returns the options of these locks.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Returns one of these locks.
    pub fn lock(&self, name: impl Name) -> Lock {
        Lock::new(self.clone(), self.key(name))
    }

    /// Acquires the lock exclusively; waits until every holder has given it back, and every earlier waiter has had
    /// its turn.
    ///
    /// # Reentrancy
    /// Granted at once if the same owner holds it exclusively. An owner that holds it as a reader
    /// gets [`WouldDeadlock`](crate::ErrorKind::WouldDeadlock) at once, because two readers that both want to write would
    /// wait for each other for ever: give the read guard back first.
    ///
    /// A call without an owner is an owner of its own. So a task that holds the lock and acquires it once more without naming the
    /// owner of its guard ([`owned_by`](Self::owned_by), [`Owner::scope`], or work inside [`run`](Self::run)) waits for itself, for ever:
    /// no error, because the guard may be on its way to another task. After a second a warning in the log names both calls.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the queue and leaves nothing behind in the store. The place in the queue is lost.
    ///
    /// # If the lock is lost
    /// The guard says so: [`Lease::lost`], [`Lease::is_valid`]. Work that must stop then is best done by
    /// [`run`](Self::run).
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) for a group or name outside its limits, [`Unavailable`](crate::ErrorKind::Unavailable) if the
    /// store does not answer for about one lease, or has not answered the last request when a limited wait is over,
    /// [`TimedOut`](crate::ErrorKind::TimedOut) if the options limit the [wait](Options::with_wait) and other owners hold it for longer:
    /// the error says which client held it shortly before, and how many waiters were before the caller, if the store could be asked in
    /// time, [`Closed`](crate::ErrorKind::Closed) after [`Ylock::close`].
    #[doc(alias = "lock")]
    #[track_caller]
    pub fn write(&self, name: impl Name) -> impl Future<Output = Result<Guard>> {
        acquire_or_time_out(self, self.key(name), Mode::Write)
    }

    /// Acquires the lock exclusively if that is possible now; never waits for another holder.
    ///
    /// Returns `None` if the lock is held or waited for. Of many callers that try a free name at once, one gets it. While the store does
    /// not answer, the call fails with [`Unavailable`](crate::ErrorKind::Unavailable) after one request timeout of the engine. Reentrancy,
    /// cancel safety, loss and the other errors as with [`write`](Self::write).
    #[doc(alias = "try_lock")]
    #[track_caller]
    pub fn try_write(&self, name: impl Name) -> impl Future<Output = Result<Option<Guard>>> {
        acquire(self, self.key(name), Mode::Write, Wait::No)
    }

    /// Acquires the lock exclusively if its turn comes within `time`; otherwise returns `None`: other owners hold it or were first. If the
    /// store has not answered the last request by then, the call fails with [`Unavailable`](crate::ErrorKind::Unavailable).
    ///
    /// Zero is the same as [`try_write`](Self::try_write). The rest is as with [`write`](Self::write).
    #[track_caller]
    pub fn write_within(
        &self,
        name: impl Name,
        time: Duration,
    ) -> impl Future<Output = Result<Option<Guard>>> {
        acquire(self, self.key(name), Mode::Write, Wait::For(time))
    }

    /// Acquires the lock to share it with other readers; waits for a writer that holds it, and for writers that came
    /// earlier.
    ///
    /// # Reentrancy
    /// Granted at once if the same owner holds the lock, as a reader or as the writer. A task that holds it under another owner waits for
    /// itself, as with [`write`](Self::write).
    ///
    /// Cancel safety, loss and errors as with [`write`](Self::write).
    #[doc(alias = "rlock")]
    #[track_caller]
    pub fn read(&self, name: impl Name) -> impl Future<Output = Result<Guard>> {
        acquire_or_time_out(self, self.key(name), Mode::Read)
    }

    /// Acquires the lock for reading if that is possible now; returns `None` if a writer holds it or waits for it.
    #[doc(alias = "try_rlock")]
    #[track_caller]
    pub fn try_read(&self, name: impl Name) -> impl Future<Output = Result<Option<Guard>>> {
        acquire(self, self.key(name), Mode::Read, Wait::No)
    }

    /// Acquires the lock for reading if its turn comes within `time`; otherwise returns `None`.
    #[track_caller]
    pub fn read_within(
        &self,
        name: impl Name,
        time: Duration,
    ) -> impl Future<Output = Result<Option<Guard>>> {
        acquire(self, self.key(name), Mode::Read, Wait::For(time))
    }

    /// Runs `work` while holding the lock exclusively, and stops it if the lock is lost.
    ///
    /// The lease is renewed while `work` runs. If the lock is lost the future of `work` is dropped, wherever it
    /// is, and the result is an error of kind [`Lost`](crate::ErrorKind::Lost): what the work did until then stays done,
    /// so let it send the [token](Lease::token) with everything that must not happen twice. Inside `work` the owner is
    /// current: it may acquire the same lock again.
    ///
    /// # Cancel safety
    /// Dropping the future drops `work` and gives the lock back.
    ///
    /// # Errors
    /// Those of [`write`](Self::write), and `Lost`. If `work` ended while the lock was valid its result
    /// is returned even if giving the lock back fails afterwards.
    ///
    /// # Examples
    /// ```
    /// # use ylock::Ylock;
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
    /// let users = Ylock::in_memory().locks("users");
    /// let token = users.run("alice", |lease| async move { lease.token() }).await?;
    /// assert!(token.is_some());
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn run<W, F>(&self, name: impl Name, work: W) -> impl Future<Output = Result<F::Output>>
    where
        W: FnOnce(Lease) -> F,
        F: Future,
    {
        run(self, self.key(name), Mode::Write, work)
    }

    /// Runs `work` while holding the lock exclusively, if that is possible now; returns `None`, without any work, if the lock is held or
    /// waited for. Otherwise like [`run`](Self::run).
    ///
    /// # Errors
    /// Those of [`try_write`](Self::try_write), and `Lost`.
    #[track_caller]
    pub fn try_run<W, F>(&self, name: impl Name, work: W) -> impl Future<Output = Result<Option<F::Output>>>
    where
        W: FnOnce(Lease) -> F,
        F: Future,
    {
        run_after(self, self.key(name), Wait::No, work)
    }

    /// Runs `work` while holding the lock exclusively, if its turn comes within `time`; otherwise returns `None`, without any work. The
    /// time bounds the wait, not the work. Otherwise like [`run`](Self::run).
    ///
    /// # Errors
    /// Those of [`write_within`](Self::write_within), and `Lost`.
    ///
    /// # Examples
    /// ```
    /// # use std::time::Duration;
    /// # use ylock::Ylock;
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
    /// let reports = Ylock::in_memory().locks("reports");
    /// let writing = reports.write("monthly").await?;
    ///
    /// let made = reports.run_within("monthly", Duration::from_millis(50), |_| async { "a report" }).await?;
    /// assert!(made.is_none()); // still being written elsewhere
    /// # drop(writing); Ok(()) }
    /// ```
    #[track_caller]
    pub fn run_within<W, F>(
        &self,
        name: impl Name,
        time: Duration,
        work: W,
    ) -> impl Future<Output = Result<Option<F::Output>>>
    where
        W: FnOnce(Lease) -> F,
        F: Future,
    {
        run_after(self, self.key(name), Wait::For(time), work)
    }

    /// Runs `work` while holding the lock as a reader; otherwise like [`run`](Self::run).
    ///
    /// # Errors
    /// Those of [`read`](Self::read), and `Lost`.
    #[track_caller]
    pub fn run_read<W, F>(&self, name: impl Name, work: W) -> impl Future<Output = Result<F::Output>>
    where
        W: FnOnce(Lease) -> F,
        F: Future,
    {
        run(self, self.key(name), Mode::Read, work)
    }

    fn key(&self, name: impl Name) -> Result<Key> {
        Key::new(Arc::clone(&self.group), name)
    }
}
