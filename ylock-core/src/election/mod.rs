//! Election of a leader: the candidate that holds the write lock of a name leads.

mod leader;
mod leadership;
mod observe;

use std::future::Future;
use std::time::Duration;

use crate::acquire::{acquire_or_time_out, run};
use crate::error::Result;
use crate::key::Key;
use crate::lease::Lease;
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

    /// Becomes the leader; waits until the present leader has resigned or is lost, and every earlier candidate has had its turn.
    ///
    /// The lead lasts as long as the value that is returned, unless it is lost.
    ///
    /// # Fairness
    /// As with [`Locks::write`](crate::Locks::write): by default candidates lead in the order in which they came.
    ///
    /// # Reentrancy
    /// As with [`Locks::write`](crate::Locks::write): the owner that leads already is given the same lead at once, and resigns when it has given back
    /// each of them. A task that leads under another owner and is a candidate once more waits for itself, for ever; after a second the log
    /// warns.
    ///
    /// # Cancel safety
    /// Dropping the future ends the candidacy and leaves nothing behind in the store. The place in the queue is lost.
    ///
    /// # If the lock is lost
    /// Then the lead is lost, and the [`Leadership`] says so.
    ///
    /// # Errors
    /// Those of [`Locks::write`](crate::Locks::write). With the option `wait`, [`TimedOut`](crate::ErrorKind::TimedOut) if others lead for longer.
    ///
    /// # Examples
    /// ```
    /// # use ylock::Ylock;
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
    /// let election = Ylock::in_memory().locks("elections").election("reminders");
    /// let leadership = election.campaign().await?;
    /// println!("this replica leads, in term {:?}", leadership.term());
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn campaign(&self) -> impl Future<Output = Result<Leadership>> {
        let granted = acquire_or_time_out(&self.terms, self.key.clone(), Mode::Write);
        async { granted.await.map(Leadership::new) }
    }

    /// Becomes the leader as [`campaign`](Self::campaign) does, runs `work`, and resigns when the work has ended. Drops the work, wherever it is,
    /// when the lead is lost.
    ///
    /// This is [`Locks::run`](crate::Locks::run), under the name by which a leader looks for it. `work` is given the lease: its
    /// [token](Lease::token) is the term. It is not started again: a program that is to go on as a candidate calls in a loop.
    ///
    /// # Fairness
    /// As with [`campaign`](Self::campaign).
    ///
    /// # Reentrancy
    /// As with [`Locks::run`](crate::Locks::run): inside `work` the owner is current, and leads also where it is a candidate again. A task that leads
    /// under another owner waits for itself, for ever; after a second the log warns.
    ///
    /// # Cancel safety
    /// Dropping the future drops `work` and resigns.
    ///
    /// # If the lock is lost
    /// The future of `work` is dropped, and the result is an error of kind [`Lost`](crate::ErrorKind::Lost). What the work did until then
    /// stays done, so let it send the term with everything that must not happen twice.
    ///
    /// # Errors
    /// Those of [`campaign`](Self::campaign), and `Lost`.
    ///
    /// # Examples
    /// A replica that is a candidate for as long as it runs:
    /// ```
    /// # use ylock::{ErrorKind, Ylock};
    /// # async fn send_reminders() {}
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
    /// let election = Ylock::in_memory().locks("elections").election("reminders");
    /// loop {
    ///     match election.run_while_leader(|_| send_reminders()).await {
    ///         Ok(()) => break, // the work has come to its end
    ///         Err(error) if error.kind() == ErrorKind::Lost => {} // another replica leads; a candidate again
    ///         Err(error) => return Err(error),
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn run_while_leader<W, F>(&self, work: W) -> impl Future<Output = Result<F::Output>>
    where
        W: FnOnce(Lease) -> F,
        F: Future,
    {
        run(&self.terms, self.key.clone(), Mode::Write, work)
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
