//! The owner of a lock: the unit of reentrancy.

use std::fmt;
use std::future::Future;
use std::str::FromStr;

use crate::environment::Environment;
use crate::error::{Error, ErrorKind, Result};

tokio::task_local! {
    static CURRENT: Owner;
}

/// The owner of a lock. Acquisitions by the same owner are reentrant; two owners exclude each other.
///
/// An owner is a value, never a thread or a task: 128 random bits that are never used again. Make one, and
/// either make it current with [`scope`](Self::scope) or name it with
/// [`Locks::owned_by`](crate::Locks::owned_by). An acquisition outside any scope is its own owner: correct,
/// but not reentrant.
///
/// All calls of one owner hold the lock together: two branches of one `join!` under one owner do not exclude
/// each other.
///
/// # Examples
/// ```
/// # use ylock::{Owner, Ylock};
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
/// let users = Ylock::in_memory().locks("users");
/// Owner::new().scope(async {
///     let outer = users.write("alice").await?;
///     let inner = users.write("alice").await?; // the same owner: at once
///     assert_eq!(outer.token(), inner.token());
///     ylock::Result::Ok(())
/// }).await?;
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Owner(u128);

impl Owner {
    /// Creates a new owner, different from every other.
    #[allow(clippy::new_without_default, reason = "two calls never give equal values, so it is no default")]
    pub fn new() -> Self {
        Self(crate::environment::entropy())
    }

    /// Creates a new owner from an environment, so that a simulation decides it.
    pub(crate) fn drawn_from(environment: &dyn Environment) -> Self {
        Self(environment.random_identity())
    }

    /// Runs `future` with this owner as the current one: acquisitions inside it belong to this owner.
    ///
    /// Futures that are spawned inside are not part of the scope; give them a scope of their own with the same
    /// owner if they shall belong to it.
    pub async fn scope<F: Future>(self, future: F) -> F::Output {
        CURRENT.scope(self, future).await
    }

    /// Runs `work`, which is a closure and no future, with this owner as the current one: for synchronous code.
    ///
    /// Only this thread is in the scope, and only until the closure returns: neither threads nor tasks that are started inside are.
    ///
    /// # Examples
    /// ```
    /// # use ylock::Owner;
    /// let owner = Owner::new();
    /// owner.sync_scope(|| assert_eq!(Owner::current(), Some(owner)));
    /// assert_eq!(Owner::current(), None);
    /// ```
    pub fn sync_scope<T>(self, work: impl FnOnce() -> T) -> T {
        CURRENT.sync_scope(self, work)
    }

    /// Returns the owner whose scope this code runs in, if any.
    pub fn current() -> Option<Self> {
        CURRENT.try_with(|owner| *owner).ok()
    }

    /// Returns the 16 bytes that identify this owner, to hand it to another process.
    pub fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }

    /// Returns the owner with these bytes, as given by [`to_bytes`](Self::to_bytes).
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(u128::from_be_bytes(bytes))
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Owner({self})")
    }
}

impl FromStr for Owner {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let bad =
            || Error::new(ErrorKind::Invalid, format!("{text:?} is not an owner: 32 hexadecimal digits"));
        if text.len() != 32 || text.starts_with('+') {
            return Err(bad());
        }
        u128::from_str_radix(text, 16).map(Self).map_err(|_| bad())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_survives_text_and_bytes() {
        let owner = Owner::new();
        assert_eq!(owner.to_string().parse::<Owner>().unwrap(), owner);
        assert_eq!(Owner::from_bytes(owner.to_bytes()), owner);
        assert!("+".repeat(32).parse::<Owner>().is_err());
        assert!("zz".parse::<Owner>().is_err());
    }

    #[tokio::test]
    async fn the_work_of_run_is_in_the_scope_from_its_first_line_on() {
        let lock = crate::Ylock::in_memory().lock("group", "name");
        let work = |lease: crate::Lease| {
            let seen = (Owner::current(), Some(lease.owner()));
            async move { seen }
        };
        let (current, holder) = lock.write().run(work).await.unwrap();
        assert_eq!(current, holder);
    }

    #[expect(clippy::disallowed_methods, reason = "a task as users start one")]
    #[tokio::test]
    async fn the_scope_ends_with_its_future_and_is_not_inherited_by_tasks() {
        let owner = Owner::new();
        let inside = owner.scope(async {
            let spawned = tokio::spawn(async { Owner::current() }).await.unwrap();
            (Owner::current(), spawned)
        });
        assert_eq!(inside.await, (Some(owner), None));
        assert_eq!(Owner::current(), None);
    }
}
