//! The client: one connection to a store, and the way to all locks in it.

use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::sync::Arc;

use crate::client_name::ClientName;
use crate::engine::{AcquisitionId, Diagnostics, Engine, Inspection};
use crate::error::{Error, ErrorKind, Result};
use crate::guarantees::Guarantees;
use crate::handle::Handle;
use crate::key::Key;
use crate::layer::{Events, GroupUsage, Layer};
use crate::listing::Listing;
use crate::lock::Lock;
use crate::locks::Locks;
use crate::memory::MemoryEngine;
use crate::multi_lock::{MultiLock, TwoPhaseLocking, grow};
use crate::name::Name;
use crate::options::Options;
use crate::semaphore::{self, SemaphoreInspection};
use crate::terms::Terms;
use crate::token::Token;

/// Distributed locks on one store. Cheap to clone; all clones are the same client.
///
/// Two clients, also two in one process, are two strangers to the store: they exclude each other, and owners are
/// reentrant only within one.
#[derive(Clone)]
pub struct Ylock {
    pub(crate) handle: Handle,
}

impl Ylock {
    /// Creates a client over an engine, with the default [`Options`].
    pub fn new(engine: impl Engine) -> Self {
        Self::from_arc(Arc::new(engine))
    }

    /// Creates a client over an engine that is shared.
    pub fn from_arc(engine: Arc<dyn Engine>) -> Self {
        Self { handle: Handle::over(engine) }
    }

    /// Creates a client over a new, empty in-memory store: locks between the tasks of this process, for a program that runs
    /// alone, and for tests. See [`MemoryStore`](crate::MemoryStore) for several clients of one in-memory store.
    pub fn in_memory() -> Self {
        Self::new(MemoryEngine::new())
    }

    /// Returns the same client, for locks with other options; what they leave open stays as it is. Bad options are reported by the first
    /// acquisition; [`try_with_options`](Self::try_with_options) reports them at once.
    #[must_use]
    pub fn with_options(&self, options: Options) -> Self {
        Self { handle: self.handle.with_options(options) }
    }

    /// Returns the same client, for locks with other options; what they leave open stays as it is. Fails at once, and not at the first
    /// acquisition, if the engine does not support them, such as a lease that is too short for its request timeout.
    ///
    /// The in-memory engine supports every lease from 100 ms to 24 h, also those that an engine over a network does not support.
    ///
    /// # Errors
    /// [`Config`](crate::ErrorKind::Config) that names the limit and what to change.
    pub fn try_with_options(&self, options: Options) -> Result<Self> {
        Ok(Self { handle: self.handle.try_with_options(options)? })
    }

    /// Returns the options of locks that are not given others.
    pub fn options(&self) -> &Options {
        &self.handle.options
    }

    /// Names this client, and all its clones, from now on. The name is shown for every lock that the client acquires afterwards, or waits
    /// for: by [`inspect`](Self::inspect), by the error of a wait that is over, and in the log. By default it is the host and the process.
    ///
    /// # Errors
    /// [`Config`](crate::ErrorKind::Config) for an empty name, one of more than 64 bytes, and one with control characters.
    ///
    /// # Examples
    /// ```
    /// use ylock::Ylock;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
    /// let ylock = Ylock::in_memory().with_name("billing-2")?;
    /// let guard = ylock.locks("users").write("alice").await?;
    /// let holder = &ylock.inspect("users", "alice").await?.holders[0];
    /// assert_eq!(holder.client.as_str(), "billing-2");
    /// # drop(guard); Ok(()) }
    /// ```
    pub fn with_name(self, name: impl Into<Arc<str>>) -> Result<Self> {
        self.handle.keeper.name().set(ClientName::new(name)?);
        Ok(self)
    }

    /// Returns the name of the client.
    pub fn name(&self) -> ClientName {
        self.handle.keeper.name().get()
    }

    /// Returns the same client with one more [layer](Layer), inside the earlier ones.
    #[must_use]
    pub fn layer(&self, layer: impl Layer) -> Self {
        self.layer_arc(Arc::new(layer))
    }

    /// Returns the same client with one more layer, which other clients may share.
    #[must_use]
    pub fn layer_arc(&self, layer: Arc<dyn Layer>) -> Self {
        Self { handle: self.handle.with_layer(layer) }
    }

    /// Returns a stream of what this client does from now on, through any of its clones: acquisitions with their outcome, holds that end,
    /// losses, renewals, hand-overs.
    ///
    /// A program that reads too slowly loses the oldest events, and the stream says how many; a lock never waits for the stream. Every call
    /// makes a stream of its own. It ends when all clones of the client are gone.
    ///
    /// # Examples
    /// ```
    /// use ylock::Ylock;
    /// use ylock::layer::Event;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
    /// let ylock = Ylock::in_memory();
    /// let mut events = ylock.events();
    /// drop(ylock.locks("users").write("alice").await?);
    /// assert!(matches!(events.next().await, Some(Event::Acquired { .. })));
    /// # Ok(()) }
    /// ```
    pub fn events(&self) -> Events {
        self.handle.keeper.events()
    }

    /// Returns what this client holds and waits for now, by group, in the order of their names: a walk over all keys that are in use.
    pub fn usage(&self) -> Vec<GroupUsage> {
        self.handle.keeper.usage()
    }

    /// Returns the locks of a group: one for each user, order or file.
    pub fn locks(&self, group: impl Name) -> Locks {
        Locks::new(self.handle.clone(), group.into_name())
    }

    /// Returns one lock.
    pub fn lock(&self, group: impl Name, name: impl Name) -> Lock {
        self.locks(group).lock(name)
    }

    /// Returns a set of no locks, to which [`MultiLock::write`] and [`MultiLock::read`] add some: they are acquired at once, all or none.
    ///
    /// # Examples
    /// ```
    /// # use ylock::Ylock;
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
    /// let ylock = Ylock::in_memory();
    /// let both = ylock.multi_lock().write("users", "alice").write("users", "bob").acquire().await?;
    /// assert_eq!(both.len(), 2);
    /// # Ok(()) }
    /// ```
    pub fn multi_lock(&self) -> MultiLock {
        MultiLock::new(self.handle.clone())
    }

    /// Runs `work`, which finds out on the way which locks it needs; **it may run several times, from its beginning.**
    ///
    /// `work` takes its locks with the value that it is given, one after the other, and holds all of them until it has ended. A lock that is not
    /// free at a moment at which waiting for it might never end makes it begin anew: the call fails with
    /// [`GivesWay`](crate::ErrorKind::GivesWay), which `work` passes on by `?`. All locks are given back then, and before `work` runs again, all
    /// locks that it has asked for so far are acquired in order, as by [`multi_lock`](Self::multi_lock). So what `work` does before it has its last lock, it
    /// may do twice: look first, and change nothing before all locks are there.
    ///
    /// What `work` returns counts only if it was given all locks that it asked for. Otherwise it runs again, whatever it has made of the error.
    ///
    /// # Fairness
    /// As with [`MultiLock::acquire`]. Each run adds a lock, or a mode, to those that are acquired before the next one, so nearly every closure
    /// runs once or twice. Not promised: that it ends if each run asks for other locks. From the ninth run on the log warns.
    ///
    /// # Reentrancy
    /// Inside `work` the owner is current. Locks that it acquires in another way than with the value that it is given are not looked at. A task
    /// that holds one of the locks itself under another owner waits for itself, for ever; after a second the log warns.
    ///
    /// # Cancel safety
    /// Dropping the future drops `work` and gives all locks back.
    ///
    /// # If the lock is lost
    /// `work` is dropped, at whatever point it is, and the result is an error of kind [`Lost`](crate::ErrorKind::Lost) that names the lock. It does
    /// not run again, unless it has given way before: what it has done stays done.
    ///
    /// # Errors
    /// Those of `work`, after which all locks are given back; those of [`MultiLock::acquire`], when locks are acquired for the next run; and `Lost`.
    ///
    /// # Examples
    /// Who gets alice's money stands in her account:
    /// ```
    /// # use ylock::Ylock;
    /// # async fn heir_of(_: &str) -> &'static str { "bob" }
    /// # async fn move_all(_: &str, _: &str) -> Result<i64, std::io::Error> { Ok(7) }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let ylock = Ylock::in_memory();
    /// let moved = ylock.two_phase_locking(|taking| async move {
    ///     taking.write("accounts", "alice").await?;
    ///     let heir = heir_of("alice").await;
    ///     taking.write("accounts", heir).await?;
    ///     // All locks are there: from here on nothing is done twice.
    ///     Ok::<_, Box<dyn std::error::Error>>(move_all("alice", heir).await?)
    /// });
    /// assert_eq!(moved.await?, 7);
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn two_phase_locking<W, F, T, E>(
        &self,
        work: W,
    ) -> impl Future<Output = Result<T, E>> + use<W, F, T, E>
    where
        W: FnMut(TwoPhaseLocking) -> F,
        F: Future<Output = Result<T, E>>,
        E: From<Error>,
    {
        let (terms, at) = (Terms::of(self.handle.clone()), Location::caller());
        async move { grow(&terms, work, at).await }
    }

    /// Returns the holders of a lock and the waiters for it, in order: of this client all waiters, of each other client only its first.
    ///
    /// The others queue inside their process, and not even their number is in the store: a process has one contender there, and a count
    /// beside it would cost a write whenever a waiter comes or goes, or else be as old as the last renewal. How many wait in a process is told,
    /// by group, by its metric `ylock_waiting` and its [`usage`](Self::usage).
    ///
    /// # Errors
    /// [`Unavailable`](crate::ErrorKind::Unavailable) if the store does not answer, and
    /// [`Invalid`](crate::ErrorKind::Invalid) for a key outside its limits.
    pub async fn inspect(&self, group: impl Name, name: impl Name) -> Result<Inspection> {
        self.handle.keeper.inspect(&Key::new(group, name)?).await
    }

    /// Returns the holders of the permits of a semaphore and the waiters for one.
    ///
    /// The store is asked for each permit by itself: a holder that moves to another permit meanwhile may be shown twice, or not at all. A client that
    /// was granted a permit a moment ago may be shown among the waiters as well.
    ///
    /// # Errors
    /// As [`inspect`](Self::inspect).
    ///
    /// # Examples
    /// What a page for operators shows:
    /// ```
    /// # use ylock::Ylock;
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
    /// let ylock = Ylock::in_memory();
    /// let permit = ylock.locks("reports").semaphore("render", 2).acquire().await?;
    ///
    /// let seen = ylock.inspect_semaphore("reports", "render").await?;
    /// println!("{} of {:?} permits are held, {} wait", seen.holders.len(), seen.permits, seen.queue.len());
    /// # assert_eq!((seen.holders.len(), seen.permits), (1, Some(2)));
    /// # drop(permit); Ok(()) }
    /// ```
    pub async fn inspect_semaphore(&self, group: impl Name, name: impl Name) -> Result<SemaphoreInspection> {
        semaphore::inspect(&self.handle, &Key::new(group, name)?).await
    }

    /// Returns whether this token belongs to the present holder of a lock. For a worker that is not the holder, and is about to do what the holder
    /// has sent it: the holder sends its [token](crate::Lease::token) along.
    ///
    /// The store is asked, and answers with what it has acknowledged last: once another holder has been let in, the former one's token is refused.
    /// The answer is as old as its way back. The holder may lose the lock while the worker works, so a resource that can compare tokens by itself is
    /// safe where this is not; see [`Token`].
    ///
    /// - **True** also for a holder whose lease has ended, if the store has not noticed yet: then no other has been let in either.
    /// - **Tasks of one client** that hand the lock on to each other have one grant in the store. Their tokens differ, and all of them are accepted until
    ///   that grant ends, unless `hand_over` is zero.
    /// - **Readers** of one client share a grant as well.
    /// - **A server that was replaced and does not know it** answers as before: a former primary of PostgreSQL that goes on, or for some ticks a leader of
    ///   ZooKeeper that has lost the others. So may two nodes of Cassandra whose clocks differ, about a holder that has died, where the answer does not show the next
    ///   holder.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) if the engine gives no tokens ([`Guarantees::fencing`](crate::Guarantees::fencing)); otherwise as
    /// [`inspect`](Self::inspect). An error is no answer: the worker asks again, or does not do the work.
    ///
    /// # Examples
    /// A worker does what the owner of a partition wants, as long as it is the owner:
    /// ```
    /// # use ylock::{Token, Ylock};
    /// # async fn apply(_: &str) {}
    /// async fn work(ylock: &Ylock, sent_with: Token, order: &str) -> ylock::Result<()> {
    ///     if ylock.verify("partitions", "7", sent_with).await? {
    ///         apply(order).await;
    ///     }
    ///     Ok(())
    /// }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
    /// let ylock = Ylock::in_memory();
    /// let owner = ylock.locks("partitions").write("7").await?;
    /// let token = owner.token().expect("the engine gives tokens");
    /// work(&ylock, token, "double the price").await?;
    ///
    /// drop(owner);
    /// let next = ylock.locks("partitions").write("7").await?;
    /// assert!(!ylock.verify("partitions", "7", token).await?);
    /// # drop(next); Ok(()) }
    /// ```
    pub async fn verify(&self, group: impl Name, name: impl Name, token: Token) -> Result<bool> {
        let key = Key::new(group, name)?;
        if !self.guarantees().fencing {
            let message = "it gives no tokens, so none can be verified: choose an engine, or options of it, that declare fencing";
            return Err(Error::new(ErrorKind::Unsupported, message)
                .with_engine(self.engine_name())
                .with_key(&key));
        }
        self.handle.keeper.verify(&key, token).await
    }

    /// Returns a listing of the locks and semaphores in the store that are held or waited for, whichever client does so; of all groups, or
    /// [of one](Listing::of_group).
    ///
    /// It is for those who look after a service, and not for a program that wants a lock: the store is asked for the keys page by page, and then
    /// for the holders and waiters of each; of a semaphore for those of each permit. A lock that is in use all the time is shown at least once; one
    /// that comes or goes meanwhile may be left out, or be shown twice. What a page costs the store, whose locks all clients share, stands in the `guarantees.md` of the engine.
    ///
    /// # Examples
    /// What alice's requests are waiting for:
    /// ```
    /// # use ylock::Ylock;
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
    /// let ylock = Ylock::in_memory();
    /// let guard = ylock.locks("users").write("alice").await?;
    /// let mut listing = ylock.list().of_group("users");
    /// while let Some(lock) = listing.next().await? {
    ///     let seen = lock.seen?;
    ///     println!("{}: held by {}, {} wait", lock.key.name(), seen.holders[0].client, seen.queue.len());
    /// }
    /// # drop(guard); Ok(()) }
    /// ```
    pub fn list(&self) -> Listing {
        Listing::new(self.handle.clone())
    }

    /// Returns what the servers of the store tell of themselves: whether each of them answers, its version, its clock, the settings on which the
    /// promises of the engine rest, and what breaks them. What an engine is not told is left out.
    ///
    /// It is for those who look after a service; the command `ylock doctor` prints it.
    ///
    /// # Errors
    /// [`Unavailable`](crate::ErrorKind::Unavailable) if no server answers. One of several that does not is a [fault](crate::engine::ServerReport::fault)
    /// of that server.
    ///
    /// # Examples
    /// ```
    /// # use ylock::Ylock;
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
    /// let ylock = Ylock::in_memory();
    /// for risk in ylock.diagnose().await?.findings {
    ///     eprintln!("{}: {}", risk.what, risk.remedy);
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn diagnose(&self) -> Result<Diagnostics> {
        self.handle.keeper.diagnose().await
    }

    /// Takes a lock away from all of its holders, and returns how many acquisitions that were.
    ///
    /// The holders are told: their `lost()` fires, at once where the store can reach them, otherwise
    /// at their next renewal, a third of the lease later at most. Only then, or when the lease ends, the next waiter gets in.
    ///
    /// # Errors
    /// As [`inspect`](Self::inspect).
    pub async fn revoke(&self, group: impl Name, name: impl Name) -> Result<usize> {
        self.handle.keeper.revoke(&Key::new(group, name)?).await
    }

    /// Takes all permits of a semaphore away from their holders, and returns how many that were.
    ///
    /// The holders are told as by [`revoke`](Self::revoke), and no holder that does not hear of it keeps its permit for longer than its lease. A client
    /// that waits for a permit goes on waiting.
    ///
    /// # Errors
    /// As [`inspect`](Self::inspect).
    pub async fn revoke_semaphore(&self, group: impl Name, name: impl Name) -> Result<usize> {
        semaphore::revoke(&self.handle, &Key::new(group, name)?).await
    }

    /// Takes a lock away from the holder with this id, as [`inspect`](Self::inspect) shows it, and from no other. Returns whether it held the lock.
    /// The holder is told as by [`revoke`](Self::revoke).
    ///
    /// # Errors
    /// As [`inspect`](Self::inspect).
    ///
    /// # Examples
    /// One reader of several:
    /// ```
    /// # use ylock::Ylock;
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
    /// let ylock = Ylock::in_memory();
    /// let guard = ylock.locks("reports").read("today").await?;
    /// let seen = ylock.inspect("reports", "today").await?;
    /// assert!(ylock.revoke_one("reports", "today", seen.holders[0].id).await?);
    /// # drop(guard); Ok(()) }
    /// ```
    pub async fn revoke_one(&self, group: impl Name, name: impl Name, id: AcquisitionId) -> Result<bool> {
        self.handle.keeper.revoke_one(&Key::new(group, name)?, id).await
    }

    /// Takes permits of a semaphore away from the holders with these ids, as [`inspect_semaphore`](Self::inspect_semaphore) shows them, and from no other.
    /// Returns how many of them held a permit. The holders are told as by [`revoke`](Self::revoke).
    ///
    /// # Errors
    /// As [`inspect`](Self::inspect).
    pub async fn revoke_permits(
        &self,
        group: impl Name,
        name: impl Name,
        ids: &[AcquisitionId],
    ) -> Result<usize> {
        semaphore::revoke_some(&self.handle, &Key::new(group, name)?, ids).await
    }

    /// Gives back everything that this client holds, leaves every queue, and waits until the store knows it.
    ///
    /// Guards that are still held are lost, with the reason `closed`; waiters get an error.
    /// Afterwards every acquisition fails with [`Closed`](crate::ErrorKind::Closed). If the store
    /// does not answer this ends after about one lease, and after two at the latest; the store
    /// frees the rest by itself. What the store refuses to take back, such as from a user without
    /// the right to write, is not waited for: it is free when its lease is over. Closing twice is
    /// harmless.
    pub async fn close(&self) {
        self.handle.keeper.close().await;
    }

    /// Returns what the engine promises.
    pub fn guarantees(&self) -> Guarantees {
        self.handle.keeper.engine().guarantees()
    }

    /// Returns the word that names the engine.
    pub fn engine_name(&self) -> &'static str {
        self.handle.keeper.engine().name()
    }

    /// Returns how many keys this client keeps in memory: those that are held, waited for, or on their way back.
    #[doc(hidden)]
    pub fn keys_in_use(&self) -> usize {
        self.handle.keeper.len()
    }
}

impl fmt::Debug for Ylock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ylock")
            .field("name", &self.name())
            .field("engine", &self.engine_name())
            .field("options", &self.handle.options)
            .field("layers", &self.handle.layers)
            .field("keys_in_use", &self.keys_in_use())
            .finish_non_exhaustive()
    }
}
