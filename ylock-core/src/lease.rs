//! The view that a holder has of its lock.

use std::sync::Arc;
use std::time::Duration;

use crate::engine::LossReason;
use crate::error::{Error, ErrorKind, Result};
use crate::keeper::Hold;
use crate::key::Key;
use crate::mode::Mode;
use crate::owner::Owner;
use crate::token::Token;

/// A view of a lock that is held: its token, and whether it is still held. It does not keep the lock.
///
/// A lock over a store is a lease, not a mutex: a process that was paused may find that its lease has ended and
/// that another owner holds the lock. Check [`is_valid`](Self::is_valid) before something that must not be done
/// twice, and send the [`token`](Self::token) with it.
#[derive(Clone, Debug)]
pub struct Lease {
    hold: Arc<Hold>,
    mode: Mode,
}

impl Lease {
    pub(crate) fn new(hold: Arc<Hold>, mode: Mode) -> Self {
        Self { hold, mode }
    }

    /// Returns the key of the lock.
    pub fn key(&self) -> &Key {
        &self.hold.validity.key
    }

    /// Returns the mode: shared or exclusive.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Returns the owner that holds it.
    pub fn owner(&self) -> Owner {
        self.hold.owner
    }

    /// Returns the fencing token, or `None` if the engine cannot give a safe one. See [`Token`] for how to use it.
    pub fn token(&self) -> Option<Token> {
        self.hold.token
    }

    /// Returns whether the lock is held: neither lost nor given back, its lease has not run out,
    /// and it is not held for longer than [`max_hold`](crate::Options::with_max_hold) allows.
    ///
    /// Counted on this machine's own clock, which includes suspend (not on macOS), from before the last renewal was sent, less a
    /// [margin](crate::Options::margin). Once `false`, always `false`. Not guaranteed: that it is still `true`
    /// when you have read the answer.
    pub fn is_valid(&self) -> bool {
        self.hold.is_valid()
    }

    /// Returns `Ok` if the lock is [valid](Self::is_valid), otherwise the error that says why not.
    ///
    /// # Errors
    /// [`ErrorKind::Lost`](crate::ErrorKind::Lost); it says so where the lock was given back.
    pub fn check(&self) -> Result<()> {
        if self.is_valid() { Ok(()) } else { Err(lost(self)) }
    }

    /// Returns whether the owner has given the lock back.
    pub(crate) fn is_given_back(&self) -> bool {
        self.hold.is_over()
    }

    /// Returns how long the lock stays valid without another renewal, and within its
    /// [`max_hold`](crate::Options::with_max_hold); zero when it is not.
    pub fn remaining(&self) -> Duration {
        self.hold.remaining()
    }

    /// Waits until the lock is lost, and returns why; before the store gives it to another owner, unless this process
    /// was not running. A lock that was given back is not lost: then this never ends.
    ///
    /// # Cancel safety
    /// Can be dropped and called again.
    pub async fn lost(&self) -> LossReason {
        self.hold.lost().await
    }

    /// Returns why the lock was lost, if it was.
    pub fn loss(&self) -> Option<LossReason> {
        self.hold.loss()
    }
}

/// Returns the error of a holder that does not hold its lock any more.
pub(crate) fn lost(lease: &Lease) -> Error {
    let message = match lease.loss() {
        None if lease.is_given_back() => "the lock was given back before".to_owned(),
        None => "the lock was lost: lapsed".to_owned(),
        Some(reason) => format!("the lock was lost: {}", reason.as_str()),
    };
    Error::new(ErrorKind::Lost, message).with_key(lease.key())
}
