//! A set of locks that grows: the names are found on the way.
//!
//! A lock after all that are held is waited for, any other one is only tried: so no ring of waiters can close, as in [`taking`](super::taking).
//! Where a try is refused, the closure runs again, and all locks that it has asked for until then are taken first, in order.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::acquire::acquire_or_time_out;
use super::guards::{Guards, give_back};
use super::leases::{Leases, lost_one};
use super::wanted::{MAX_MEMBERS, Member};
use crate::acquire::{acquire_behind, acquire_or_time_out_at, owner_of, with_owner};
use crate::error::{Error, ErrorKind, Result};
use crate::guard::Guard;
use crate::keeper::Site;
use crate::key::Key;
use crate::lease::Lease;
use crate::mode::{Mode, Wait};
use crate::name::Name;
use crate::terms::Terms;

/// From this attempt on the log warns: nearly every set knows all its keys after the second.
const MANY_ATTEMPTS: usize = 9;

/// The keys that were asked for in all attempts until now, each in the strongest mode.
type Learnt = BTreeMap<Key, Mode>;

/// What the closure of [`growing`](crate::Ylock::growing) takes locks with. Clones are the same; one that is kept for longer than the closure
/// runs takes nothing any more.
#[derive(Clone)]
pub struct Growing(Arc<Attempt>);

/// One run of the closure.
struct Attempt {
    /// With an owner.
    terms: Terms,
    /// One lock is taken at a time: of two waits at once the later key could be granted while the earlier one is still waited for.
    turn: tokio::sync::Mutex<()>,
    state: Mutex<State>,
    /// Rung when there is one more lock to look after.
    grown: Notify,
}

#[derive(Default)]
struct State {
    held: BTreeMap<Key, Guard>,
    learnt: Learnt,
    /// The closure must run again, whatever it returns: what it was told is here and not only in an error, which it may drop.
    gives_way: bool,
    /// The closure has ended: what is granted from now on must not stay.
    over: bool,
}

/// What is to be done for a lock that the closure asks for.
enum Next {
    Held(Lease),
    GivesWay,
    Wait,
    Try,
}

/// Runs `work`, which takes its locks one by one, again and again until it has not given way.
pub(crate) async fn grow<W, F, T, E>(terms: &Terms, mut work: W, at: Site) -> Result<T, E>
where
    W: FnMut(Growing) -> F,
    F: Future<Output = Result<T, E>>,
    E: From<Error>,
{
    let (terms, mut learnt, mut attempts) = (with_owner(terms), Learnt::new(), 0);
    loop {
        attempts += 1;
        if attempts >= MANY_ATTEMPTS {
            warn(&terms, attempts, &learnt);
        }
        let running = Running::begin(&terms, &learnt, at).await?;
        let ended = running.run(&mut work).await;
        let guards = running.0.end();
        match running.0.learnt_to_begin_anew() {
            // Whatever the closure has made of that: what it returns counts only if it had all that it asked for.
            Some(more) => learnt = more,
            None => return finish(&terms, guards, ended).await,
        }
    }
}

/// Ends the last attempt: gives its locks back, and returns what the closure has returned.
async fn finish<T, E: From<Error>>(
    terms: &Terms,
    guards: Guards,
    ended: Result<Result<T, E>>,
) -> Result<T, E> {
    let output = ended?;
    if output.is_ok() {
        guards.check()?;
    }
    give_back(terms, guards).await;
    output
}

fn warn(terms: &Terms, attempts: usize, learnt: &Learnt) {
    tracing::warn!(
        engine = terms.handle.keeper.engine().name(), owner = %owner_of(terms), attempts, keys = learnt.len(),
        "a set that grows begins anew once more: whenever its closure ran, it asked for one more lock that was not free. It ends when the closure \
         asks for locks that it has asked for before"
    );
}

/// An attempt that goes on. With it the attempt ends, also if the caller stops waiting: a handle that lives on keeps no lock.
struct Running(Arc<Attempt>);

impl Running {
    /// Begins with all locks that earlier attempts have asked for, taken in order.
    async fn begin(terms: &Terms, learnt: &Learnt, at: Site) -> Result<Self> {
        let members: Vec<_> =
            learnt.iter().map(|(key, mode)| Member { key: key.clone(), mode: *mode }).collect();
        let guards = acquire_or_time_out(terms, &members, at).await?;
        let held = guards.into_iter().map(|guard| (guard.key().clone(), guard)).collect();
        let state = State { held, learnt: learnt.clone(), ..State::default() };
        Ok(Self(Arc::new(Attempt {
            terms: terms.clone(),
            turn: tokio::sync::Mutex::default(),
            state: Mutex::new(state),
            grown: Notify::new(),
        })))
    }

    /// Runs the closure, or returns the error of the first lock that is lost meanwhile.
    async fn run<F: Future>(&self, work: &mut impl FnMut(Growing) -> F) -> Result<F::Output> {
        let handle = Growing(Arc::clone(&self.0));
        tokio::select! {
            // As in `run` of a set: work that is ready in the same moment must not run on.
            biased;
            lost = self.0.lost() => Err(lost),
            output = owner_of(&self.0.terms).scope(async { work(handle).await }) => Ok(output),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.end());
    }
}

impl Attempt {
    async fn take(&self, key: Result<Key>, mode: Mode, at: Site) -> Result<Lease> {
        let key = key?;
        let _turn = self.turn.lock().await;
        let guard = match self.next(&key, mode)? {
            Next::Held(lease) => return Ok(lease),
            Next::GivesWay => return Err(gives_way(&key)),
            Next::Wait => acquire_or_time_out_at(&self.terms, Ok(key.clone()), mode, at).await?,
            Next::Try => match acquire_behind(&self.terms, key.clone(), mode, Wait::No, None, at).await {
                Ok(Some(guard)) => guard,
                Ok(None) => return Err(self.give_way(&key)),
                // The next attempt waits for it, and a wait bears that the store is silent for a while.
                Err(error) if error.kind().is_silence() => return Err(self.give_way(&key)),
                Err(error) => return Err(error),
            },
        };
        self.keep(key, guard)
    }

    /// Decides what is to be done for this lock, and remembers that it was asked for.
    fn next(&self, key: &Key, mode: Mode) -> Result<Next> {
        let mut state = self.state.lock();
        if state.over {
            return Err(over(key));
        }
        state.learn(key, mode)?;
        let held = state.held.get(key);
        if let Some(guard) = held.filter(|guard| mode == Mode::Read || guard.mode() == Mode::Write) {
            return Ok(Next::Held(guard.lease()));
        }
        // A reader that wants to write must not wait for the other readers, which may want the same: the next attempt writes from the beginning.
        if state.gives_way || held.is_some() {
            state.gives_way = true;
            return Ok(Next::GivesWay);
        }
        let last = self.terms.handle.keeper.last_of_sets(owner_of(&self.terms));
        Ok(if last.is_none_or(|last| last < *key) { Next::Wait } else { Next::Try })
    }

    fn give_way(&self, key: &Key) -> Error {
        self.state.lock().gives_way = true;
        gives_way(key)
    }

    fn keep(&self, key: Key, guard: Guard) -> Result<Lease> {
        let set = self.terms.handle.keeper.hold_set(guard.owner(), key.clone());
        let (lease, guard) = (guard.lease(), guard.of_set(&set));
        let mut state = self.state.lock();
        if state.over {
            // Before the guard, whose drop may run anything.
            drop(state);
            return Err(over(&key));
        }
        state.held.insert(key, guard);
        drop(state);
        self.grown.notify_waiters();
        Ok(lease)
    }

    /// Waits until one of the locks is lost, also one that is still to come, and returns the error.
    async fn lost(&self) -> Error {
        loop {
            let grown = self.grown.notified();
            let leases = Leases::new(self.state.lock().held.values().map(Guard::lease));
            tokio::select! {
                biased;
                (key, _) = leases.lost() => return lost_one(&leases, &key),
                () = grown => {}
            }
        }
    }

    /// Ends the attempt, and returns what it held.
    fn end(&self) -> Guards {
        let mut state = self.state.lock();
        state.over = true;
        let held = std::mem::take(&mut state.held);
        drop(state);
        held.into_values().collect()
    }

    /// Returns what the next attempt begins with, if there is to be one.
    fn learnt_to_begin_anew(&self) -> Option<Learnt> {
        let mut state = self.state.lock();
        state.gives_way.then(|| std::mem::take(&mut state.learnt))
    }
}

impl State {
    fn learn(&mut self, key: &Key, mode: Mode) -> Result<()> {
        if self.learnt.len() >= MAX_MEMBERS && !self.learnt.contains_key(key) {
            let message = format!("a set that grows has {MAX_MEMBERS} locks; that is the limit");
            return Err(Error::new(ErrorKind::Invalid, message).with_key(key));
        }
        let learnt = self.learnt.entry(key.clone()).or_insert(mode);
        if mode == Mode::Write {
            *learnt = mode;
        }
        Ok(())
    }
}

fn gives_way(key: &Key) -> Error {
    let message = "the lock is not free, and waiting for it might never end: pass this error on, and the closure runs again, with all locks \
                   that it has asked for";
    Error::new(ErrorKind::GivesWay, message).with_key(key)
}

fn over(key: &Key) -> Error {
    Error::new(ErrorKind::Invalid, "the closure for which this lock was to be taken has ended").with_key(key)
}

impl Growing {
    /// Takes one more lock exclusively, and returns its lease. It is given back when the closure has ended.
    ///
    /// One lock is taken at a time: a second call waits for the end of the first.
    ///
    /// # Fairness
    /// Waits, as [`Locks::write`](crate::Locks::write) does, for a lock that comes after all that are held, in the order of group and name, both by
    /// their bytes. Any other lock is tried, and if it is not free the closure begins anew.
    ///
    /// # Reentrancy
    /// What is held already is granted at once. A lock that is held to read, and is wanted to write, makes the closure begin anew with the
    /// write. An owner that holds the lock as a reader outside of the closure gets [`WouldDeadlock`](crate::ErrorKind::WouldDeadlock).
    /// A task that holds it itself under another owner waits for itself, for ever, at this call or when the closure begins anew; after a second the
    /// log warns.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the queue and leaves nothing behind in the store.
    ///
    /// # If the lock is lost
    /// The closure's future is dropped; see [`Ylock::growing`](crate::Ylock::growing).
    ///
    /// # Errors
    /// - [`GivesWay`](crate::ErrorKind::GivesWay): the lock is not free, and this call must not wait for it. Pass it on: the closure runs again.
    /// - [`Invalid`](crate::ErrorKind::Invalid): the closure has ended, or a set has more than [`MAX_MEMBERS`](crate::MAX_MEMBERS) locks.
    /// - Those of [`Locks::write`](crate::Locks::write). These do not make the closure run again.
    ///
    /// # Examples
    /// A folder is deleted together with the one that it names:
    /// ```
    /// # use ylock::{Error, Ylock};
    /// # async fn linked_to(_: &str) -> &'static str { "b" }
    /// # async fn delete(_: &[&str]) {}
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
    /// let deleted = Ylock::in_memory().growing(|taking| async move {
    ///     taking.write("folders", "a").await?;
    ///     let linked = linked_to("a").await;
    ///     taking.write("folders", linked).await?;
    ///     delete(&["a", linked]).await;
    ///     Ok::<_, Error>(2)
    /// });
    /// # assert_eq!(deleted.await?, 2); Ok(()) }
    /// ```
    #[track_caller]
    pub fn write(&self, group: impl Name, name: impl Name) -> impl Future<Output = Result<Lease>> {
        let (key, at) = (Key::new(group, name), Location::caller());
        async move { self.0.take(key, Mode::Write, at).await }
    }

    /// Takes one more lock to share it with other readers, and returns its lease.
    ///
    /// # Fairness
    /// As with [`write`](Self::write).
    ///
    /// # Reentrancy
    /// As with [`write`](Self::write). What is held to write may be read. A task that holds the lock as the writer under another owner waits for
    /// itself, for ever.
    ///
    /// # Cancel safety
    /// As with [`write`](Self::write).
    ///
    /// # If the lock is lost
    /// As with [`write`](Self::write).
    ///
    /// # Errors
    /// Those of [`write`](Self::write) but `WouldDeadlock`.
    ///
    /// # Examples
    /// An invoice is written in the currency of its customer, whose rate no import changes meanwhile:
    /// ```
    /// # use ylock::{Error, Ylock};
    /// # async fn currency_of(_: u32) -> &'static str { "eur" }
    /// # async fn total(_: u32, _: &str) -> u64 { 7 }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
    /// let total = Ylock::in_memory().growing(|taking| async move {
    ///     taking.write("invoices", 4711).await?;
    ///     let currency = currency_of(4711).await;
    ///     taking.read("rates", currency).await?;
    ///     Ok::<_, Error>(total(4711, currency).await)
    /// });
    /// # assert_eq!(total.await?, 7); Ok(()) }
    /// ```
    #[track_caller]
    pub fn read(&self, group: impl Name, name: impl Name) -> impl Future<Output = Result<Lease>> {
        let (key, at) = (Key::new(group, name), Location::caller());
        async move { self.0.take(key, Mode::Read, at).await }
    }
}

impl fmt::Debug for Growing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.0.state.lock();
        f.debug_struct("Growing")
            .field("held", &state.held.keys())
            .field("gives_way", &state.gives_way)
            .finish_non_exhaustive()
    }
}
