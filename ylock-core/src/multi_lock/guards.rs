//! The guards of a set of locks.

use std::fmt;
use std::ops::Deref;

use futures_util::future::join_all;

use super::leases::Leases;
use crate::error::Result;
use crate::foreign::tell;
use crate::guard::Guard;
use crate::terms::Terms;
use crate::token::Token;
use crate::unlocked::Unlocked;

/// Several locks that are held together. Dropping it gives all of them back.
///
/// Everything that can be asked about the locks is on [`Leases`], to which it dereferences. If one of the locks is lost, the others stay held,
/// and are renewed, until this value is dropped: no other owner comes in while what was done under them is being undone.
///
/// Guards become a set by `collect()`, of whatever owners and clients they are, and [`into_guards`](Self::into_guards) takes a set apart.
///
/// # Examples
/// Of two accounts that were taken together one is given back early:
/// ```
/// # use ylock::{Guards, Ylock};
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
/// let ylock = Ylock::in_memory();
/// let both = ylock.multi_lock().write("accounts", "alice").write("accounts", "bob").acquire().await?;
///
/// let (bob, rest): (Vec<_>, Vec<_>) = both.into_guards().into_iter().partition(|guard| guard.key().name() == "bob");
/// drop(bob);
/// let alice: Guards = rest.into_iter().collect();
/// assert!(alice.is_valid() && ylock.lock("accounts", "bob").write().now().await?.is_some());
/// # Ok(()) }
/// ```
#[derive(Default)]
#[must_use = "the locks are given back as soon as their guards are dropped: keep them in a variable while you work, or use `run`"]
pub struct Guards {
    leases: Leases,
    /// In the order of their keys, as the leases.
    guards: Vec<Guard>,
}

impl Guards {
    /// Returns a view of these locks, to pass around.
    pub fn leases(&self) -> Leases {
        self.leases.clone()
    }

    /// Returns the guards, each for itself, in the order of their keys.
    pub fn into_guards(mut self) -> Vec<Guard> {
        std::mem::take(&mut self.guards)
    }

    /// Gives all locks back and waits until the store, or the next local waiters, have them.
    ///
    /// Returns [`Unlocked::WasLost`] if any of them was lost before.
    ///
    /// # Fairness
    /// As with [`Guard::unlock`].
    ///
    /// # Cancel safety
    /// The locks are given back also if this future is dropped.
    ///
    /// # Errors
    /// Those of [`Guard::unlock`], the first in the order of the keys. The other locks are given back all the same.
    pub async fn unlock(mut self) -> Result<Unlocked> {
        let guards = std::mem::take(&mut self.guards);
        // The last one first, as in `drop`.
        let answers = join_all(guards.into_iter().rev().map(Guard::unlock)).await;
        let answers = answers.into_iter().rev().collect::<Result<Vec<_>>>()?;
        let all = answers.into_iter().all(Unlocked::is_released);
        Ok(if all { Unlocked::Released } else { Unlocked::WasLost })
    }
}

impl FromIterator<Guard> for Guards {
    fn from_iter<I: IntoIterator<Item = Guard>>(guards: I) -> Self {
        let mut guards: Vec<_> = guards.into_iter().collect();
        guards.sort_by(|one, other| one.key().cmp(other.key()));
        Self { leases: Leases::new(guards.iter().map(Guard::lease)), guards }
    }
}

impl IntoIterator for Guards {
    type Item = Guard;
    type IntoIter = std::vec::IntoIter<Guard>;

    fn into_iter(self) -> Self::IntoIter {
        self.into_guards().into_iter()
    }
}

impl Deref for Guards {
    type Target = Leases;

    fn deref(&self) -> &Leases {
        &self.leases
    }
}

impl Drop for Guards {
    fn drop(&mut self) {
        // The last one first: who waits for a key before it then finds it free.
        while self.guards.pop().is_some() {}
    }
}

impl fmt::Debug for Guards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.guards).finish()
    }
}

/// Notes that the owner of these guards, which came by the way of a set, holds them together.
pub(super) fn as_set(terms: &Terms, guards: Vec<Guard>) -> Guards {
    let Some(last) = guards.last() else { return Guards::default() };
    let set = terms.handle.keeper.hold_set(last.owner(), last.key().clone());
    guards.into_iter().map(|guard| guard.of_set(&set)).collect()
}

/// Gives the locks back, and waits for it. The work under them is done, so what goes wrong now is for the log.
pub(super) async fn give_back(terms: &Terms, guards: Guards) {
    let engine = terms.handle.keeper.engine().name();
    let guards = guards.into_guards();
    let leases = Leases::new(guards.iter().map(Guard::lease));
    let answers = join_all(guards.into_iter().rev().map(Guard::unlock)).await;
    for (lease, answer) in leases.iter().rev().zip(answers) {
        let (key, owner, token) = (lease.key(), lease.owner(), lease.token().map(Token::get));
        match answer {
            Ok(Unlocked::Released) => {}
            Ok(Unlocked::WasLost) => tell!(
                warn, engine, ?key, %owner, token,
                "the lock was lost at the moment at which the work under it ended"
            ),
            Err(error) => tell!(
                warn, engine, ?key, %owner, token, error = format!("{error:#}"),
                "the work is done, but the release of its lock was not confirmed"
            ),
        }
    }
}
