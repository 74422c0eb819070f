//! The value that a caller keeps for one permit, and the view of it.

use std::fmt;
use std::ops::Deref;
use std::time::Duration;

use crate::engine::LossReason;
use crate::error::{Error, Result};
use crate::foreign::tell;
use crate::guard::Guard;
use crate::key::Key;
use crate::lease::{Lease, lost};
use crate::token::Token;
use crate::unlocked::Unlocked;

/// A permit of a [`Semaphore`](crate::Semaphore) that is held. Dropping it gives it back, as with a [`Guard`].
///
/// Everything that can be asked about it is on [`PermitLease`], to which it dereferences.
#[must_use = "the permit is given back as soon as it is dropped: keep it in a variable while you work, or use `run`"]
pub struct Permit {
    lease: PermitLease,
    // Given back in this order: the semaphore may have another number of permits only when no permit is held any more.
    permit: Guard,
    client: Guard,
}

/// A view of a permit that is held. It does not keep the permit.
///
/// As with every lease, check [`is_valid`](Self::is_valid) before something that must not be done by more holders than there are permits.
#[derive(Clone, Debug)]
pub struct PermitLease {
    key: Key,
    /// Of the lock of this one permit.
    permit: Lease,
    /// Of the read by which this client is known as one of the semaphore.
    client: Lease,
    number: u32,
}

impl Permit {
    pub(super) fn new(key: Key, permit: Guard, client: Guard, number: u32) -> Self {
        let lease = PermitLease { key, permit: permit.lease(), client: client.lease(), number };
        Self { lease, permit, client }
    }

    /// Returns a view of this permit, to pass around.
    pub fn lease(&self) -> PermitLease {
        self.lease.clone()
    }

    /// Gives the permit back and waits until the store has it.
    ///
    /// Returns [`Unlocked::WasLost`] if it was lost before.
    ///
    /// # Cancel safety
    /// The permit is given back also if this future is dropped.
    ///
    /// # Errors
    /// Those of [`Guard::unlock`].
    pub async fn unlock(self) -> Result<Unlocked> {
        let Self { permit, client, .. } = self;
        let (permit, client) = (permit.unlock().await?, client.unlock().await?);
        Ok(if permit.is_released() && client.is_released() { Unlocked::Released } else { Unlocked::WasLost })
    }
}

impl PermitLease {
    /// Returns the key of the semaphore.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// Returns which of the permits this is, from 1 on. No other holder has one of the same number at the same time.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Returns a token that grows from holder to holder of the permit with this [`number`](Self::number), or `None` if the engine cannot give a
    /// safe one.
    ///
    /// It tells grants apart. It **cannot fence** what the semaphore protects: holders of different permits are there at the same time, and their
    /// tokens say nothing about which of them came later.
    pub fn token(&self) -> Option<Token> {
        self.permit.token()
    }

    /// Returns whether the permit is held; see [`Lease::is_valid`].
    pub fn is_valid(&self) -> bool {
        self.permit.is_valid() && self.client.is_valid()
    }

    /// Returns `Ok` if the permit is [valid](Self::is_valid), otherwise the error that says why not.
    ///
    /// # Errors
    /// [`ErrorKind::Lost`](crate::ErrorKind::Lost).
    pub fn check(&self) -> Result<()> {
        self.permit.check().and_then(|()| self.client.check())
    }

    /// Returns the error of one that was lost.
    pub(super) fn error(&self) -> Error {
        lost(if self.permit.loss().is_some() { &self.permit } else { &self.client })
    }

    /// Returns how long the permit stays valid without another renewal; zero when it is not.
    pub fn remaining(&self) -> Duration {
        self.permit.remaining().min(self.client.remaining())
    }

    /// Waits until the permit is lost, and returns why; before the store gives it to another holder, unless this process was not running. A
    /// permit that was given back is not lost: then this never ends.
    ///
    /// # Cancel safety
    /// Can be dropped and called again.
    pub async fn lost(&self) -> LossReason {
        tokio::select! {
            reason = self.permit.lost() => reason,
            reason = self.client.lost() => reason,
        }
    }

    /// Returns why the permit was lost, if it was.
    pub fn loss(&self) -> Option<LossReason> {
        self.permit.loss().or_else(|| self.client.loss())
    }
}

/// Gives a permit back whose work is done: what goes wrong now is no error of the work.
pub(super) async fn give_back(permit: Permit) {
    let lease = permit.lease();
    let key = lease.key();
    match permit.unlock().await {
        Ok(Unlocked::Released) => {}
        Ok(Unlocked::WasLost) => {
            tell!(warn, ?key, "the permit was lost at the moment at which the work under it ended");
        }
        Err(error) => tell!(
            warn,
            ?key,
            error = format!("{error:#}"),
            "the work is done, but the release of its permit was not confirmed"
        ),
    }
}

impl Deref for Permit {
    type Target = PermitLease;

    fn deref(&self) -> &PermitLease {
        &self.lease
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit")
            .field("key", self.key())
            .field("number", &self.number())
            .field("token", &self.token())
            .field("remaining", &self.remaining())
            .finish_non_exhaustive()
    }
}
