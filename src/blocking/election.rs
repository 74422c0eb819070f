//! Election of a leader, for synchronous code.

use std::time::Duration;

use super::acquire::Acquire;
use super::guard::within;
use super::tied::Tied;

use crate::{Key, Leader, Lease, LossReason, Owner, Result, Token, Unlocked};

/// An election: of all candidates for one name, in whichever processes they are, at most one leads at a time; as
/// [`ylock::Election`](crate::Election).
///
/// A stream of who leads is with the async API only: [`ylock::Election::observe`](crate::Election::observe).
///
/// # Examples
/// Three replicas of a service, of which one sends the reminders:
/// ```
/// # use ylock::blocking::Ylock;
/// # fn send_reminders(_term: Option<ylock::Token>) {}
/// # fn main() -> ylock::Result<()> {
/// let reminders = Ylock::in_memory().locks("elections").election("reminders");
///
/// let leadership = reminders.campaign().wait()?; // waits until it is this replica's turn
/// while leadership.is_leader() {
///     send_reminders(leadership.term());
///     # break;
/// }
/// assert!(leadership.resign()?.is_released()); // the next candidate leads at once
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Election(Tied<crate::Election>);

impl Election {
    pub(super) fn new(election: Tied<crate::Election>) -> Self {
        Self(election)
    }

    /// Returns the group and the name.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) if one of them is outside its limits.
    pub fn key(&self) -> Result<&Key> {
        self.0.value.key()
    }

    /// Becomes the leader; see [`crate::Election::campaign`].
    #[track_caller]
    pub fn campaign(&self) -> Acquire<Leadership> {
        Acquire::new(self.0.tie(self.0.value.campaign()))
    }

    /// Returns who leads now, as the store shows it; `None` if there is no leader. By the time of the answer that may have changed.
    ///
    /// # Errors
    /// As [`ylock::Election::leader`](crate::Election::leader); also [`Invalid`](crate::ErrorKind::Invalid) inside an async runtime.
    pub fn leader(&self) -> Result<Option<Leader>> {
        self.0.wait(self.0.value.leader())?
    }
}

/// The lead in an election; as [`ylock::Leadership`](crate::Leadership). Dropping it resigns, in the background.
///
/// The lead is a lease: check [`is_leader`](Self::is_leader) before something that only the leader may do, and send the [`term`](Self::term) with it.
#[must_use = "it resigns as soon as this is dropped: keep it in a variable while it leads, or use `campaign().run(work)`"]
#[derive(Debug)]
pub struct Leadership(pub(super) Tied<crate::Leadership>);

impl Leadership {
    /// Returns the term: the fencing token, which is larger for every later leader of the same election.
    pub fn term(&self) -> Option<Token> {
        self.0.value.term()
    }

    /// Returns whether this is still the leader, as far as its own clock can tell. Once `false`, always `false`.
    pub fn is_leader(&self) -> bool {
        self.0.value.is_leader()
    }

    /// Returns `Ok` if this is still the [leader](Self::is_leader), otherwise the error that says why not.
    ///
    /// # Errors
    /// [`Lost`](crate::ErrorKind::Lost).
    pub fn check(&self) -> Result<()> {
        self.0.value.check()
    }

    /// Returns the owner that leads.
    pub fn owner(&self) -> Owner {
        self.0.value.owner()
    }

    /// Returns a view of the lock below, to pass around.
    pub fn lease(&self) -> Lease {
        self.0.value.lease()
    }

    /// Waits until the lead is lost, but at most this long, and returns why it was; `None` if this still leads when the time is over.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) inside an async runtime.
    pub fn wait_lost(&self, time: Duration) -> Result<Option<LossReason>> {
        self.0.wait(within(time, self.0.value.lost()))
    }

    /// Gives up the lead and waits until the store, or the next candidate of this client, has it; as
    /// [`ylock::Leadership::resign`](crate::Leadership::resign).
    ///
    /// # Errors
    /// As [`ylock::Leadership::resign`](crate::Leadership::resign); also [`Invalid`](crate::ErrorKind::Invalid) inside an async runtime: then it
    /// resigns in the background.
    pub fn resign(self) -> Result<Unlocked> {
        self.0.finish(crate::Leadership::resign)
    }
}
