//! Election of a leader, for synchronous code.

use std::time::Duration;

use super::guard::within;
use super::outside::Outside;
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
/// let leadership = reminders.campaign()?; // waits until it is this replica's turn
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

    /// Becomes the leader; waits until the present leader has resigned or is lost, and every earlier candidate has had its turn.
    ///
    /// # Fairness
    /// As with [`ylock::Election::campaign`](crate::Election::campaign).
    ///
    /// # Reentrancy
    /// As with [`ylock::Election::campaign`](crate::Election::campaign); a thread that leads under another owner and is a candidate once more waits
    /// for itself, for ever.
    ///
    /// # Cancel safety
    /// Nothing can be cancelled: the [wait](crate::Options::with_wait) of the options bounds the candidacy, and [`close`](super::Ylock::close) on
    /// another thread ends it.
    ///
    /// # If the lock is lost
    /// Then the lead is lost, and the [`Leadership`] says so.
    ///
    /// # Errors
    /// As [`ylock::Election::campaign`](crate::Election::campaign); also [`Invalid`](crate::ErrorKind::Invalid) inside an async runtime.
    ///
    /// # Examples
    /// ```
    /// # use ylock::blocking::Ylock;
    /// # fn main() -> ylock::Result<()> {
    /// let election = Ylock::in_memory().locks("elections").election("reminders");
    /// let leadership = election.campaign()?;
    /// println!("this replica leads, in term {:?}", leadership.term());
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn campaign(&self) -> Result<Leadership> {
        self.0.acquire(self.0.value.campaign()).map(Leadership)
    }

    /// Becomes the leader as [`campaign`](Self::campaign) does, runs `work` on the thread of the caller, and resigns when the work has ended.
    ///
    /// # Fairness
    /// As with [`campaign`](Self::campaign).
    ///
    /// # Reentrancy
    /// As with [`Locks::run`](super::Locks::run): inside `work` the owner is current.
    ///
    /// # Cancel safety
    /// As with [`campaign`](Self::campaign).
    ///
    /// # If the lock is lost
    /// `work` goes on to its end, while another candidate may lead already: it asks [`Lease::check`] before each step that only the leader may
    /// take. Then the result is an error of kind [`Lost`](crate::ErrorKind::Lost).
    ///
    /// # Errors
    /// Those of [`campaign`](Self::campaign), and `Lost`.
    ///
    /// # Examples
    /// A leader that sends reminders until another replica leads:
    /// ```
    /// # use ylock::blocking::Ylock;
    /// # fn next_reminder() -> Option<&'static str> { None }
    /// # fn send(_: &str) {}
    /// # fn main() -> ylock::Result<()> {
    /// let election = Ylock::in_memory().locks("elections").election("reminders");
    /// election.run_while_leader(|lease| {
    ///     while lease.is_valid() {
    ///         let Some(reminder) = next_reminder() else { break };
    ///         send(reminder);
    ///     }
    /// })?;
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn run_while_leader<T>(&self, work: impl FnOnce(Lease) -> T) -> Result<T> {
        let outside = Outside::new();
        self.0.work(self.0.value.run_while_leader(|lease| outside.call(move || work(lease))), &outside)
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
#[must_use = "it resigns as soon as this is dropped: keep it in a variable while it leads, or use `run_while_leader`"]
#[derive(Debug)]
pub struct Leadership(Tied<crate::Leadership>);

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
