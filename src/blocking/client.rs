//! The client: from a URL to locks, for synchronous code.

use std::sync::Arc;

use super::listing::Listing;
use super::lock::Lock;
use super::locks::Locks;
use super::multi_lock::MultiLock;
use super::outside::Outside;
use super::own_runtime::OwnRuntime;
use super::tied::Tied;
use super::two_phase_locking::TwoPhaseLocking;
use crate::engine::{AcquisitionId, Inspection};
use crate::layer::GroupUsage;
use crate::url::EngineUrl;
use crate::{ClientName, Config, Error, Guarantees, Layer, Name, Options, Result, SemaphoreInspection};

/// Distributed locks on one store, for synchronous code; as [`ylock::Ylock`](crate::Ylock). Cheap to clone; all clones are the same client.
///
/// It has threads of its own; see the [module](super).
#[derive(Clone)]
pub struct Ylock(Tied<crate::Ylock>);

/// Connects to the store that `url` names, and waits for the connection; as [`ylock::connect`](crate::connect).
///
/// # Errors
/// Those of [`ylock::connect`](crate::connect), [`Invalid`](crate::ErrorKind::Invalid) inside an async runtime, and
/// [`Unavailable`](crate::ErrorKind::Unavailable) if the client's thread cannot be started.
///
/// # Examples
/// ```
/// # fn main() -> ylock::Result<()> {
/// let ylock = ylock::blocking::connect("memory://?lease=5s&fairness=strict")?;
/// # ylock.close() }
/// ```
pub fn connect(url: &str) -> Result<Ylock> {
    connect_to(EngineUrl::parse(url)?)
}

/// Connects to the store that `url` names, which the program has parsed, or put together, before; as [`ylock::connect_to`](crate::connect_to).
///
/// # Errors
/// As [`connect`].
pub fn connect_to(url: EngineUrl) -> Result<Ylock> {
    let runtime = OwnRuntime::start()?;
    let client = runtime.wait(crate::connect_to(url))??;
    Ok(Ylock(Tied::new(client, Ok(runtime))))
}

/// Connects to the store that a configuration names; as [`ylock::connect_with`](crate::connect_with).
///
/// # Errors
/// As [`connect`].
///
/// # Examples
/// ```
/// # fn main() -> ylock::Result<()> {
/// let ylock = ylock::blocking::connect_with(&ylock::Config::new("memory://?lease=5s")?)?;
/// # ylock.close() }
/// ```
pub fn connect_with(config: &Config) -> Result<Ylock> {
    connect_to(config.to_url())
}

impl Ylock {
    /// Returns a client for synchronous code that is the same client as this one: for a program of which a part is async, and for an engine
    /// that the program has made itself.
    ///
    /// Both parts share locks, owners and the queue of the client. The connection stays where the async part has made it: while that runtime stands
    /// still, calls here may wait for it. That no thread can be started for this value is told by its first call that waits.
    ///
    /// # Examples
    /// A service is async, and an old part of it is not:
    /// ```
    /// # async fn example() -> ylock::Result<()> {
    /// let ylock = ylock::connect("redis://cache").await?;
    /// let blocking = ylock::blocking::Ylock::from_async(ylock.clone());
    /// std::thread::spawn(move || blocking.locks("reports").write("monthly").run(|_| println!("the old part")));
    /// # Ok(()) }
    /// ```
    pub fn from_async(client: crate::Ylock) -> Self {
        Self(Tied::new(client, OwnRuntime::start()))
    }

    /// Creates a client over a new, empty in-memory store; as [`ylock::Ylock::in_memory`](crate::Ylock::in_memory). Several clients of one
    /// [`MemoryStore`](crate::MemoryStore) are made by [`from_async`](Self::from_async).
    pub fn in_memory() -> Self {
        Self::from_async(crate::Ylock::in_memory())
    }

    /// Returns the async client below: for what has no counterpart here, such as [`events`](crate::Ylock::events).
    pub fn as_async(&self) -> &crate::Ylock {
        &self.0.value
    }

    /// Returns the same client, for locks with other options; what they leave open stays as it is.
    #[must_use]
    pub fn with_options(&self, options: Options) -> Self {
        Self(self.0.tie(self.0.value.with_options(options)))
    }

    /// Returns the same client, for locks with other options, if the engine supports them.
    ///
    /// # Errors
    /// As [`ylock::Ylock::try_with_options`](crate::Ylock::try_with_options).
    pub fn try_with_options(&self, options: Options) -> Result<Self> {
        Ok(Self(self.0.tie(self.0.value.try_with_options(options)?)))
    }

    /// Returns the options of locks that are not given others.
    pub fn options(&self) -> &Options {
        self.0.value.options()
    }

    /// Names this client, and all its clones, from now on; as [`ylock::Ylock::with_name`](crate::Ylock::with_name).
    ///
    /// # Errors
    /// As [`ylock::Ylock::with_name`](crate::Ylock::with_name).
    pub fn with_name(self, name: impl Into<Arc<str>>) -> Result<Self> {
        let named = self.0.value.clone().with_name(name)?;
        Ok(Self(self.0.tie(named)))
    }

    /// Returns the name of the client.
    pub fn name(&self) -> ClientName {
        self.0.value.name()
    }

    /// Returns the same client with one more [layer](Layer), inside the earlier ones.
    #[must_use]
    pub fn layer(&self, layer: impl Layer) -> Self {
        self.layer_arc(Arc::new(layer))
    }

    /// Returns the same client with one more layer, which other clients may share.
    #[must_use]
    pub fn layer_arc(&self, layer: Arc<dyn Layer>) -> Self {
        Self(self.0.tie(self.0.value.layer_arc(layer)))
    }

    /// Returns what this client holds and waits for now, by group.
    pub fn usage(&self) -> Vec<GroupUsage> {
        self.0.value.usage()
    }

    /// Returns the locks of a group: one for each user, order or file.
    pub fn locks(&self, group: impl Name) -> Locks {
        Locks::new(self.0.tie(self.0.value.locks(group)))
    }

    /// Returns one lock.
    pub fn lock(&self, group: impl Name, name: impl Name) -> Lock {
        Lock::new(self.0.tie(self.0.value.lock(group, name)))
    }

    /// Returns a set of no locks, to which [`MultiLock::write`] and [`MultiLock::read`] add some: they are acquired at once, all or none.
    pub fn multi_lock(&self) -> MultiLock {
        MultiLock::new(self.0.tie(self.0.value.multi_lock()))
    }

    /// Runs `work`, which finds out on the way which locks it needs; **it may run several times, from its beginning.**
    ///
    /// As [`ylock::Ylock::two_phase_locking`](crate::Ylock::two_phase_locking): an error of kind [`GivesWay`](crate::ErrorKind::GivesWay) is passed on by `?`, and what
    /// `work` does before it has its last lock, it may do twice.
    ///
    /// # Fairness
    /// As with [`ylock::Ylock::two_phase_locking`](crate::Ylock::two_phase_locking).
    ///
    /// # Reentrancy
    /// As with [`ylock::Ylock::two_phase_locking`](crate::Ylock::two_phase_locking); inside `work` the owner is current on the thread of the caller.
    ///
    /// # Cancel safety
    /// Nothing can be cancelled. With [`Options::with_max_wait`] each lock is waited for only so long.
    ///
    /// # If the lock is lost
    /// `work` goes on to its end; then the result is an error of kind [`Lost`](crate::ErrorKind::Lost), and `work` does not run again, unless it has given
    /// way before.
    ///
    /// # Errors
    /// Those of [`ylock::Ylock::two_phase_locking`](crate::Ylock::two_phase_locking), and [`Invalid`](crate::ErrorKind::Invalid) inside an async runtime.
    ///
    /// # Examples
    /// Who gets alice's money stands in her account:
    /// ```
    /// # use ylock::blocking::Ylock;
    /// # fn heir_of(_: &str) -> &'static str { "bob" }
    /// # fn move_all(_: &str, _: &str) -> Result<i64, std::io::Error> { Ok(7) }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let moved = Ylock::in_memory().two_phase_locking(|taking| {
    ///     taking.write("accounts", "alice")?;
    ///     let heir = heir_of("alice");
    ///     taking.write("accounts", heir)?;
    ///     // All locks are there: from here on nothing is done twice.
    ///     Ok::<_, Box<dyn std::error::Error>>(move_all("alice", heir)?)
    /// })?;
    /// # assert_eq!(moved, 7); Ok(()) }
    /// ```
    #[track_caller]
    pub fn two_phase_locking<T, E: From<Error>>(
        &self,
        mut work: impl FnMut(TwoPhaseLocking) -> Result<T, E>,
    ) -> Result<T, E> {
        let (outside, work) = (Outside::new(), std::cell::RefCell::new(&mut work));
        let (outside, work) = (&outside, &work);
        let grown = self.0.value.two_phase_locking(|taking| {
            let taking = TwoPhaseLocking::new(self.0.tie(taking));
            outside.call(move || (work.borrow_mut())(taking))
        });
        self.0.runtime()?.wait_and_work(grown, outside)?
    }

    /// Returns the holders of a lock and the waiters for it; as [`ylock::Ylock::inspect`](crate::Ylock::inspect).
    ///
    /// # Errors
    /// As [`ylock::Ylock::inspect`](crate::Ylock::inspect); also [`Invalid`](crate::ErrorKind::Invalid) inside an async runtime.
    pub fn inspect(&self, group: impl Name, name: impl Name) -> Result<Inspection> {
        self.0.wait(self.0.value.inspect(group, name))?
    }

    /// Returns the holders of the permits of a semaphore and the waiters for one; as
    /// [`ylock::Ylock::inspect_semaphore`](crate::Ylock::inspect_semaphore).
    ///
    /// # Errors
    /// As [`inspect`](Self::inspect).
    pub fn inspect_semaphore(&self, group: impl Name, name: impl Name) -> Result<SemaphoreInspection> {
        self.0.wait(self.0.value.inspect_semaphore(group, name))?
    }

    /// Returns the locks in the store that are held or waited for, whichever client does so; of all groups, or [of one](Listing::of_group). As
    /// [`ylock::Ylock::list`](crate::Ylock::list).
    ///
    /// # Examples
    /// What the requests of users are waiting for:
    /// ```
    /// # use ylock::blocking::Ylock;
    /// # fn main() -> ylock::Result<()> {
    /// let ylock = Ylock::in_memory();
    /// let guard = ylock.locks("users").write("alice").wait()?;
    /// for lock in ylock.list().of_group("users") {
    ///     let lock = lock?;
    ///     let seen = lock.seen?;
    ///     println!("{}: held by {}, {} wait", lock.key.name(), seen.holders[0].client, seen.queue.len());
    /// }
    /// # drop(guard); Ok(()) }
    /// ```
    pub fn list(&self) -> Listing {
        Listing::new(self.0.tie(self.0.value.list()))
    }

    /// Takes a lock away from all of its holders, and returns how many acquisitions that were; as
    /// [`ylock::Ylock::revoke`](crate::Ylock::revoke).
    ///
    /// # Errors
    /// As [`inspect`](Self::inspect).
    pub fn revoke(&self, group: impl Name, name: impl Name) -> Result<usize> {
        self.0.wait(self.0.value.revoke(group, name))?
    }

    /// Takes a lock away from the holder with this id, and returns whether it held the lock; as
    /// [`ylock::Ylock::revoke_one`](crate::Ylock::revoke_one).
    ///
    /// # Errors
    /// As [`inspect`](Self::inspect).
    pub fn revoke_one(&self, group: impl Name, name: impl Name, id: AcquisitionId) -> Result<bool> {
        self.0.wait(self.0.value.revoke_one(group, name, id))?
    }

    /// Takes all permits of a semaphore away, and returns how many were held; as
    /// [`ylock::Ylock::revoke_semaphore`](crate::Ylock::revoke_semaphore).
    ///
    /// # Errors
    /// As [`inspect`](Self::inspect).
    pub fn revoke_semaphore(&self, group: impl Name, name: impl Name) -> Result<usize> {
        self.0.wait(self.0.value.revoke_semaphore(group, name))?
    }

    /// Takes permits of a semaphore away from the holders with these ids, and returns how many of them held one; as
    /// [`ylock::Ylock::revoke_permits`](crate::Ylock::revoke_permits).
    ///
    /// # Errors
    /// As [`inspect`](Self::inspect).
    pub fn revoke_permits(&self, group: impl Name, name: impl Name, ids: &[AcquisitionId]) -> Result<usize> {
        self.0.wait(self.0.value.revoke_permits(group, name, ids))?
    }

    /// Gives back everything that this client holds, ends every wait of it, on all threads, and waits until the store knows it; as
    /// [`ylock::Ylock::close`](crate::Ylock::close). Afterwards every acquisition fails with [`Closed`](crate::ErrorKind::Closed).
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) inside an async runtime: then nothing is closed.
    pub fn close(&self) -> Result<()> {
        self.0.wait(self.0.value.close())
    }

    /// Returns what the engine promises.
    pub fn guarantees(&self) -> Guarantees {
        self.0.value.guarantees()
    }

    /// Returns the word that names the engine.
    pub fn engine_name(&self) -> &'static str {
        self.0.value.engine_name()
    }

    /// Returns how many keys this client keeps in memory: those that are held, waited for, or on their way back.
    #[doc(hidden)]
    pub fn keys_in_use(&self) -> usize {
        self.0.value.keys_in_use()
    }
}

/// Shows the client, as that of the async API.
impl std::fmt::Debug for Ylock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.value.fmt(f)
    }
}
