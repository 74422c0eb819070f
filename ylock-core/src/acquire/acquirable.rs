//! What can be acquired, and how.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use crate::acquire::one::{acquire_or_time_out, acquire_within, reenter};
use crate::acquire::work::{give_back, owner_of};
use crate::error::{Error, Result};
use crate::guard::Guard;
use crate::keeper::Site;
use crate::key::Key;
use crate::lease::{Lease, lost};
use crate::mode::Mode;
use crate::owner::Owner;
use crate::terms::Terms;

/// What an [`Acquire`](crate::Acquire) can acquire: a [`Guard`], a [`Permit`](crate::Permit), [`Guards`](crate::Guards) or a
/// [`Leadership`](crate::Leadership). Implemented by ylock only.
pub trait Acquirable: Sized + Send + Sync + 'static {
    /// The view of it that work is given.
    type Lease;

    /// What is to be acquired.
    #[doc(hidden)]
    type Target: fmt::Debug + Send + Unpin + 'static;

    /// Acquires it once more for an owner that has it, which takes no time; `None` where that is not so, or more is to be done.
    #[doc(hidden)]
    fn reenter(_: &Call<Self::Target>) -> Option<Result<Self>> {
        None
    }

    /// Acquires it; waits at most as long as the options say.
    #[doc(hidden)]
    fn acquire(call: Call<Self::Target>) -> impl Future<Output = Result<Self>> + Send + 'static;

    /// Acquires it, or returns `None` when the wait is over.
    #[doc(hidden)]
    fn acquire_within(
        call: Call<Self::Target>,
        max_wait: Option<Duration>,
    ) -> impl Future<Output = Result<Option<Self>>> + Send + 'static;

    /// Returns the owner that is current inside the work under it; `None` for what has none.
    #[doc(hidden)]
    fn work_owner(terms: &Terms) -> Option<Owner> {
        Some(owner_of(terms))
    }

    /// Returns the view of it that work is given.
    #[doc(hidden)]
    fn work_lease(&self) -> Self::Lease;

    /// Waits until it is lost, and returns the error that says so.
    #[doc(hidden)]
    fn until_lost(&self) -> impl Future<Output = Error> + Send;

    /// Returns `Ok` if it is valid, otherwise the error that says why not.
    #[doc(hidden)]
    fn check_valid(&self) -> Result<()>;

    /// Gives it back after the work. What goes wrong then is for the log.
    #[doc(hidden)]
    fn give_back(self, terms: &Terms) -> impl Future<Output = ()> + Send;
}

/// An [`Acquirable`] of which one owner may have several at once. Implemented by ylock only.
pub trait Reentrant: Acquirable {}

/// One call: on which terms, of what, and from where in the program.
#[derive(Debug)]
pub struct Call<T> {
    pub(crate) terms: Terms,
    pub(crate) target: T,
    pub(crate) at: Site,
}

/// One lock, as it is wanted. A bad name is reported when the acquisition is awaited.
#[derive(Debug)]
pub struct LockTarget {
    pub(crate) key: Result<Key>,
    pub(crate) mode: Mode,
}

impl Reentrant for Guard {}

impl Acquirable for Guard {
    type Target = LockTarget;
    type Lease = Lease;

    fn reenter(Call { terms, target, at }: &Call<LockTarget>) -> Option<Result<Self>> {
        reenter(terms, target.key.as_ref().ok()?, target.mode, at)
    }

    async fn acquire(Call { terms, target, at }: Call<LockTarget>) -> Result<Self> {
        acquire_or_time_out(&terms, target.key?, target.mode, at).await
    }

    async fn acquire_within(
        Call { terms, target, at }: Call<LockTarget>,
        max_wait: Option<Duration>,
    ) -> Result<Option<Self>> {
        acquire_within(&terms, target.key?, target.mode, max_wait, None, at).await
    }

    fn work_lease(&self) -> Lease {
        self.lease()
    }

    async fn until_lost(&self) -> Error {
        self.lost().await;
        lost(self)
    }

    fn check_valid(&self) -> Result<()> {
        self.check()
    }

    async fn give_back(self, terms: &Terms) {
        give_back(terms, self).await;
    }
}
