//! The mistakes, each of them one that a lock library has made or could make.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Defect {
    /// Grants every request.
    NoLock,
    /// Each client has a store of its own.
    LocksOnlyItsOwnClient,
    /// Says that a grant was renewed and sends nothing.
    OnlyClaimsToRenew,
    /// A release removes all holders of the key.
    ReleasesWhoeverHolds,
    /// A renewal that was on its way during the release writes the grant again.
    RenewsWhatWasReleased,
    /// Enters after it slept in the queue, though its place has lapsed.
    EntersAfterItsPlaceLapsed,
    /// A grant that is gone is reported as renewed.
    HidesTheLoss,
    /// The release of a reader removes all readers.
    ReleasesAllReaders,
    /// Readers share one lease: a reader that renews it keeps all of them alive.
    OneLeaseForAllReaders,
    /// Two holders get the same token.
    RepeatsTokens,
    /// A waiter that gives up stays in the queue.
    StaysInTheQueue,
    /// A try that failed stays in the queue.
    TriesStayInTheQueue,
    /// A try that was asked before, by a future that was dropped, is refused: it meets its own traces.
    RefusesAgain,
    /// The store frees a grant earlier than its holder believes.
    LeaseEndsEarly,
    /// A contender enters without a look at the contenders before it.
    Overtakes,
    /// Readers enter past writers that wait.
    ReadersOvertake,
    /// A downgrade gives back the write lock and then asks for a read lock.
    DowngradesWithAGap,
    /// A downgrade is not told to the store.
    DowngradesInSilence,
    /// A revocation does nothing.
    IgnoresRevocation,
    /// A release lets the next contender in at once, and its grant counts from the request that learns of it.
    CountsFromTheQuestion,
    /// The request that a release took along cannot be undone.
    KeepsWhatAReleaseTook,
    /// An announced waiter is a waiter like any other.
    AnnouncedWaitersStay,
    /// An announced waiter is let in for the lease of the holder that it stood behind.
    LendsTheHoldersLease,
    /// A renewal that gives up writing writes over the revocation.
    DowngradesAwayARevocation,
    /// The waiters for a key are told of its revocation.
    RevokesWaiters,
    /// Works only as long as the runtime lives in which it was made.
    DiesWithItsRuntime,
    /// A sleep of the process counts as an outage of the store.
    TakesSleepForAnOutage,
    /// Stores the name of no client.
    ForgetsNames,
    /// Refuses a lease only when a lock is acquired with it, not when it is attached.
    RefusesLate,
    /// Knows of no run of a job.
    ForgetsRuns,
    /// Takes any run of a job for the last one that it is told of last.
    LateRunsCount,
    /// Keeps one last run for all jobs of a group.
    OneRunForAllNames,
    /// Says that it has stored the run of a job before it has.
    StoresRunsLater,
    /// Forgets that a run of a job is done.
    NoRunIsDone,
    /// Lists the locks of one page, and says that this is all.
    ListsOnePage,
    /// Takes a group for a pattern: what begins as it does belongs to it.
    ListsByPrefix,
    /// Begins a page behind so many keys as the pages before it had.
    CountsWhatItListed,
    /// Begins anew where it does not know what is next.
    ListsAfterAnything,
    /// Lists no lock of a long name.
    ListsNoLongNames,
    /// Remembers every try that it refused.
    RemembersRefusals,
}
