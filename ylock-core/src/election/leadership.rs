//! The lead, as its holder has it.

use std::time::Duration;

use crate::acquire::{Acquirable, Call, LockTarget, Reentrant};
use crate::engine::LossReason;
use crate::error::{Error, Result};
use crate::guard::Guard;
use crate::lease::Lease;
use crate::owner::Owner;
use crate::terms::Terms;
use crate::token::Token;
use crate::unlocked::Unlocked;

/// The lead in an election. Dropping it resigns, in the background; [`resign`](Self::resign) waits until the store knows it.
///
/// The lead is a lease, and a process that was paused may find that another one leads. Check [`is_leader`](Self::is_leader) before
/// something that only the leader may do, and send the [`term`](Self::term) with it.
#[must_use = "it resigns as soon as this is dropped: keep it in a variable while it leads, or use `campaign().run(work)`"]
#[derive(Debug)]
pub struct Leadership(Guard);

impl Reentrant for Leadership {}

impl Acquirable for Leadership {
    type Target = LockTarget;
    type Lease = Lease;

    async fn acquire(call: Call<LockTarget>) -> Result<Self> {
        Guard::acquire(call).await.map(Self)
    }

    async fn acquire_within(call: Call<LockTarget>, max_wait: Option<Duration>) -> Result<Option<Self>> {
        Ok(Guard::acquire_within(call, max_wait).await?.map(Self))
    }

    fn work_lease(&self) -> Lease {
        self.0.work_lease()
    }

    async fn until_lost(&self) -> Error {
        self.0.until_lost().await
    }

    fn check_valid(&self) -> Result<()> {
        self.0.check_valid()
    }

    async fn give_back(self, terms: &Terms) {
        self.0.give_back(terms).await;
    }
}

impl Leadership {
    /// Returns the term: the fencing token, which is larger for every later leader of the same election. `None` if the engine cannot give a
    /// safe one. See [`Token`] for how to use it.
    pub fn term(&self) -> Option<Token> {
        self.0.token()
    }

    /// Returns whether this is still the leader, as far as its own clock can tell: see [`Lease::is_valid`]. Once `false`, always `false`.
    pub fn is_leader(&self) -> bool {
        self.0.is_valid()
    }

    /// Returns `Ok` if this is still the [leader](Self::is_leader), otherwise the error that says why not.
    ///
    /// # Errors
    /// [`Lost`](crate::ErrorKind::Lost).
    pub fn check(&self) -> Result<()> {
        self.0.check()
    }

    /// Waits until the lead is lost, and returns why; before another candidate leads, unless this process was not running.
    ///
    /// # Cancel safety
    /// Can be dropped and called again.
    pub async fn lost(&self) -> LossReason {
        self.0.lost().await
    }

    /// Returns the owner that leads.
    pub fn owner(&self) -> Owner {
        self.0.owner()
    }

    /// Returns a view of the lock below, to pass around.
    pub fn lease(&self) -> Lease {
        self.0.lease()
    }

    /// Gives up the lead and waits until the store, or the next candidate of this client, has it. Returns
    /// [`WasLost`](Unlocked::WasLost) if the lead was lost before.
    ///
    /// # Cancel safety
    /// It resigns also if this future is dropped.
    ///
    /// # Errors
    /// Those of [`Guard::unlock`]. The next candidate leads when the lease is over, at the latest.
    pub async fn resign(self) -> Result<Unlocked> {
        self.0.unlock().await
    }
}
