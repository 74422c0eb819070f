//! A set of locks that grows: the names are found on the way.
//!
//! A lock after all that are held is waited for, any other one is only tried: so no ring of waiters can close, as in [`taking`](super::taking).
//! Where a try is refused, the closure runs again, and all locks that it has asked for until then are taken first, in order.

use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::sync::Arc;

use super::attempt::{Attempt, Learnt, Running};
use super::guards::{Guards, give_back};
use crate::acquire::{owner_of, with_owner};
use crate::error::{Error, Result};
use crate::foreign::tell;
use crate::keeper::Site;
use crate::lease::Lease;
use crate::mode::Mode;
use crate::name::Name;
use crate::purpose::named;
use crate::terms::Terms;

/// From this attempt on the log warns: nearly every set knows all its keys after the second.
const MANY_ATTEMPTS: usize = 9;

/// What the closure of [`two_phase_locking`](crate::Ylock::two_phase_locking) takes locks with. Clones are the same; one that is kept for longer than the closure
/// runs takes nothing any more.
#[derive(Clone)]
pub struct TwoPhaseLocking(pub(super) Arc<Attempt>);

/// Runs `work`, which takes its locks one by one, again and again until it has not given way.
pub(crate) async fn grow<W, F, T, E>(terms: &Terms, mut work: W, at: Site) -> Result<T, E>
where
    W: FnMut(TwoPhaseLocking) -> F,
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
    tell!(
        warn, engine = terms.handle.keeper.engine().name(), owner = %owner_of(terms), attempts, keys = learnt.len(),
        "a set that grows begins anew once more: whenever its closure ran, it asked for one more lock that was not free. It ends when the closure \
         asks for locks that it has asked for before"
    );
}

impl TwoPhaseLocking {
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
    /// The closure's future is dropped; see [`Ylock::two_phase_locking`](crate::Ylock::two_phase_locking).
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
    /// let deleted = Ylock::in_memory().two_phase_locking(|taking| async move {
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
        let (key, at) = (named(group, name), Location::caller());
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
    /// let total = Ylock::in_memory().two_phase_locking(|taking| async move {
    ///     taking.write("invoices", 4711).await?;
    ///     let currency = currency_of(4711).await;
    ///     taking.read("rates", currency).await?;
    ///     Ok::<_, Error>(total(4711, currency).await)
    /// });
    /// # assert_eq!(total.await?, 7); Ok(()) }
    /// ```
    #[track_caller]
    pub fn read(&self, group: impl Name, name: impl Name) -> impl Future<Output = Result<Lease>> {
        let (key, at) = (named(group, name), Location::caller());
        async move { self.0.take(key, Mode::Read, at).await }
    }
}

impl fmt::Debug for TwoPhaseLocking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.0.state.lock();
        f.debug_struct("TwoPhaseLocking")
            .field("held", &state.held.keys())
            .field("gives_way", &state.gives_way)
            .finish_non_exhaustive()
    }
}
