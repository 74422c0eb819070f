//! The client: one connection to a store, and the way to all locks in it.

use std::fmt;
use std::sync::Arc;

use crate::client_name::ClientName;
use crate::engine::{Engine, Inspection};
use crate::error::Result;
use crate::guarantees::Guarantees;
use crate::handle::Handle;
use crate::key::Key;
use crate::layer::{Events, GroupUsage, Layer};
use crate::lock::Lock;
use crate::locks::Locks;
use crate::memory::MemoryEngine;
use crate::name::Name;
use crate::options::Options;

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
        Self::over(Arc::new(engine))
    }

    /// Creates a client over an engine that is shared.
    pub fn over(engine: Arc<dyn Engine>) -> Self {
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
    pub fn with(&self, layer: impl Layer) -> Self {
        self.with_shared(Arc::new(layer))
    }

    /// Returns the same client with one more layer, which other clients may share.
    #[must_use]
    pub fn with_shared(&self, layer: Arc<dyn Layer>) -> Self {
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

    /// Gives back everything that this client holds, leaves every queue, and waits until the store knows it.
    ///
    /// Guards that are still held are lost, with the reason `closed`; waiters get an error. Afterwards every
    /// acquisition fails with [`Closed`](crate::ErrorKind::Closed). If the store does not answer this ends after about one
    /// lease, and after two at the latest; the store frees the rest by itself. Closing twice is harmless.
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
