//! Election of a leader: the candidate that holds the write lock of a name leads.

mod leader;
mod leadership;
mod observe;

use std::panic::Location;
use std::time::Duration;

use crate::acquire::{Acquire, LockTarget};
use crate::error::Result;
use crate::key::Key;
use crate::mode::Mode;
use crate::terms::Terms;

pub use leader::Leader;
pub use leadership::Leadership;
pub use observe::Leaders;

/// An election: of all candidates for one name, in whichever processes they are, at most one leads at a time.
///
/// It stands on the lock of that name: a candidate waits for the write lock, and leads while it holds it. So all that holds for the lock holds for
/// the lead: it is a lease, the leader is told when it is lost, and [`term`](Leadership::term) is the fencing token. A caller that
/// holds the write lock of the name otherwise is shown as the leader too; give elections a group of their own.
///
/// Cheap to clone, and free to make: nothing is kept for an election without candidates.
///
/// # Examples
/// Three replicas of a service, of which one sends the reminders:
/// ```
/// # use ylock::Ylock;
/// # async fn send_reminders(_term: Option<ylock::Token>) {}
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
/// let reminders = Ylock::in_memory().locks("elections").election("reminders");
///
/// let leadership = reminders.campaign().await?; // waits until it is this replica's turn
/// while leadership.is_leader() {
///     send_reminders(leadership.term()).await;
///     # break;
/// }
/// assert!(leadership.resign().await?.is_released()); // the next candidate leads at once
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Election {
    terms: Terms,
    /// A bad name is reported by the first call.
    key: Result<Key>,
    pace: Duration,
}

impl Election {
    /// The pause between two looks of [`observe`](Self::observe), if no other one is [set](Self::with_pace).
    pub const DEFAULT_PACE: Duration = Duration::from_secs(1);
    /// The shortest pause between two looks.
    pub const SHORTEST_PACE: Duration = Duration::from_millis(1);

    pub(crate) fn new(terms: Terms, key: Result<Key>) -> Self {
        Self { terms, key, pace: Self::DEFAULT_PACE }
    }

    /// Returns the group and the name.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) if one of them is outside its limits.
    pub fn key(&self) -> Result<&Key> {
        self.key.as_ref().map_err(Clone::clone)
    }

    /// Returns the same election, whose [observers](Self::observe) look at this pace: so late, and a trip to the store, they learn of a change. A
    /// shorter pace than [`SHORTEST_PACE`](Self::SHORTEST_PACE) is that one. Each observer costs the store one
    /// [inspection](crate::Ylock::inspect) per pace.
    #[must_use]
    pub fn with_pace(self, pace: Duration) -> Self {
        Self { pace: pace.max(Self::SHORTEST_PACE), ..self }
    }

    /// Returns the pause between two looks of an observer.
    pub fn pace(&self) -> Duration {
        self.pace
    }

    /// Becomes the leader, once the present leader has resigned or is lost and every earlier candidate has had its turn. The lead lasts as long as
    /// the value that is returned, unless it is lost.
    ///
    /// It is the acquisition of the write lock, so everything that [`Acquire`] says of that holds here. The owner that leads already is given
    /// the same lead at once, and resigns when it has given back each of them. [`run`](Acquire::run) gives the work the lease: its
    /// [token](crate::Lease::token) is the term. The work is not started again: a program that is to go on as a candidate calls in a loop.
    ///
    /// # Examples
    /// A replica that is a candidate for as long as it runs:
    /// ```
    /// # use ylock::{ErrorKind, Ylock};
    /// # async fn send_reminders() {}
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
    /// let election = Ylock::in_memory().locks("elections").election("reminders");
    /// loop {
    ///     match election.campaign().run(|_| send_reminders()).await {
    ///         Ok(()) => break, // the work has come to its end
    ///         Err(error) if error.kind() == ErrorKind::Lost => {} // another replica leads; a candidate again
    ///         Err(error) => return Err(error),
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn campaign(&self) -> Acquire<Leadership> {
        let target = LockTarget { key: self.key.clone(), mode: Mode::Write };
        Acquire::new(&self.terms, target, Location::caller())
    }

    /// Returns who leads now, as the store shows it; `None` if there is no leader. By the time of the answer that may have changed.
    ///
    /// # Errors
    /// [`Unavailable`](crate::ErrorKind::Unavailable) if the store does not answer, and [`Invalid`](crate::ErrorKind::Invalid) for a name outside its
    /// limits.
    pub async fn leader(&self) -> Result<Option<Leader>> {
        let seen = self.terms.handle.keeper.inspect(self.key()?).await?;
        Ok(Leader::in_view(seen))
    }

    /// Returns a stream of who leads: first who does now, then each change that a look shows. It looks by itself, at the
    /// [pace](Self::with_pace) of this election, because a store does not tell of changes; so a leader that leads for less than the pace may
    /// not be shown.
    ///
    /// # Examples
    /// ```
    /// # use ylock::Ylock;
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
    /// let election = Ylock::in_memory().with_name("billing-2")?.locks("elections").election("reminders");
    /// let mut leaders = election.observe();
    /// assert!(leaders.next().await?.is_none()); // there is no leader
    ///
    /// let leadership = election.campaign().await?;
    /// let leader = leaders.next().await?.expect("there is a leader");
    /// assert_eq!((leader.client().as_str(), leader.term()), ("billing-2", leadership.term()));
    /// # Ok(()) }
    /// ```
    pub fn observe(&self) -> Leaders {
        Leaders::new(self.clone())
    }
}
