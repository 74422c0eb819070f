//! The heartbeat: until when the session, and with it everything that this client holds, can be relied on.
//!
//! The session ends one timeout T after the *leader* last heard of it. A heartbeat that only the connected server answers proves
//! nothing: a server that has lost its leader goes on answering reads for several ticks, and a leader that has lost the other servers, too.
//! So a heartbeat is a write that changes nothing (a transaction with one check): its answer says that the leader had a quorum after
//! it was sent, and that the session was alive there.
//!
//! It does not say until when. To the leader a write is no sign of life: the server that the client is connected to reports every half
//! tick, which is T/6 if T is three ticks, of which sessions it has heard. Should it die before that, the leader does not hear of the write.
//! But of a request that was answered T/6 before the write was sent, or earlier, the leader has heard: it has asked the server since, and
//! the server has answered that before it answered the write; or another server has taken the session over, which the leader was asked about
//! at once. See [`signs`](super::signs). So a lease that a confirmed write prolongs ends, for its holder, when it would if it counted from
//! the moment just before that write was sent, and no later than 19/20 T after the leader heard of the session. The last twentieth is for
//! clocks that differ in speed.
//!
//! There is a sign of life every T/10, so the usual write counts for all of the longest validity, 3/4 T, or for a tenth less. After a
//! silence, also of a process that stood still, nothing counts for longer than before it for T/6.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Mutex as AsyncMutex;
use ylock_core::engine::valid_until;
use ylock_core::environment::Moment;

use super::signs::Signs;
use super::store::Fault;

/// The part of the timeout that is left when the last validity ends, for clocks that differ in speed.
const MARGIN_PART: u32 = 20;
/// The part of the timeout that is left, of a lease that is granted after a silence, for the heartbeat that prolongs it.
const NEXT_PART: u32 = 24;

/// The clock of a session, and its time.
pub(super) trait Timing {
    fn now(&self) -> Moment;

    /// Returns how long the servers keep the session without a sign of life.
    fn timeout(&self) -> Duration;

    /// Returns the moment just before the session was asked for, or was asked for again over its last connection.
    fn asked(&self) -> Moment;
}

/// The heartbeats of a session; see the [module](self).
#[derive(Debug)]
pub(super) struct Heartbeat {
    known: Mutex<Known>,
    /// The last heartbeat, locked while one is on its way, so that there is only one at a time. The task that sends it, or is the next to,
    /// may be in a runtime that is not driven any more: then the other tasks have another one of these.
    last: Mutex<Arc<Last>>,
}

#[derive(Debug)]
struct Known {
    /// The last confirmed write.
    confirmed: Stamp,
    signs: Signs,
    /// Set when the session is given up: then it was said until when this client relies on it, and no write is confirmed any more.
    is_over: bool,
}

/// The last heartbeat, and what came of it.
type Last = AsyncMutex<Option<(Stamp, Result<(), Fault>)>>;

/// What is known of a write when it is sent. A later one has later moments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Stamp {
    /// The moment just before the write is sent.
    pub(crate) sent: Moment,
    /// The leader has heard of a request that was sent at this moment, or of a later one.
    heard: Moment,
}

impl Stamp {
    /// Returns the moment from which a lease counts, if the write is confirmed: so that its validity ends in time.
    pub(crate) fn counts(self, lease: Duration, timeout: Duration) -> Moment {
        let validity = valid_until(Moment::ZERO, lease).since(Moment::ZERO);
        let longest = timeout - timeout / MARGIN_PART;
        self.sent.min(self.heard.plus(longest.saturating_sub(validity)))
    }
}

impl Heartbeat {
    /// A session is made by a write as well, which the leader itself has answered.
    pub(super) fn since(asked: Moment) -> Self {
        let confirmed = Stamp { sent: asked, heard: asked };
        let known = Known { confirmed, signs: Signs::since(asked), is_over: false };
        Self { known: Mutex::new(known), last: Mutex::default() }
    }

    /// Returns the last confirmed write.
    pub(super) fn confirmed(&self) -> Stamp {
        self.known.lock().confirmed
    }

    /// Returns a moment after which the leader has answered nothing, or not for long.
    pub(super) fn last_answered(&self) -> Moment {
        let known = self.known.lock();
        known.confirmed.sent.max(known.signs.last())
    }

    /// Returns whether a lease of this length can be granted: it has not ended before a heartbeat could prolong it.
    pub(super) fn covers(&self, lease: Duration, timing: &impl Timing) -> bool {
        let (now, timeout, known) = (timing.now(), timing.timeout(), self.known.lock());
        let counts = known.confirmed.counts(lease, timeout);
        let end = valid_until(counts, lease);
        // After a silence no heartbeat prolongs it before then.
        let next = known.signs.next(timeout).filter(|_| counts < known.confirmed.sent);
        !known.is_over && now < end && next.is_none_or(|next| next.plus(timeout / NEXT_PART) < end)
    }

    /// Gives the session up. Returns the moment until which this client may rely on it: that at which the leader may end it anyway.
    pub(super) fn end(&self, timeout: Duration) -> Moment {
        let mut known = self.known.lock();
        known.is_over = true;
        known.confirmed.heard.plus(timeout)
    }

    /// Notes that the leader has answered a request.
    pub(super) fn answered(&self, sent: Moment, timing: &impl Timing) {
        self.known.lock().signs.note(sent, timing.now(), timing.timeout());
    }

    /// Returns what is known of a write that is about to be sent. Before it is sent: what the leader heard later, it may have heard after the
    /// write. The clock is read under the lock: otherwise a task that stood still in between would have an earlier write of which more is
    /// known, and what relies on that would last for longer than [`end`](Self::end) says.
    fn stamp(&self, timing: &impl Timing) -> Stamp {
        let mut known = self.known.lock();
        let sent = timing.now();
        known.signs.heard(timing.asked());
        Stamp { sent, heard: known.signs.heard_by(sent, timing.timeout()) }
    }

    /// Returns whether the write counts.
    fn confirm(&self, stamp: Stamp, timing: &impl Timing) -> bool {
        let mut known = self.known.lock();
        if !known.is_over {
            known.confirmed = stamp.max(known.confirmed);
            known.signs.note(stamp.sent, timing.now(), timing.timeout());
        }
        !known.is_over
    }

    /// Sends a write. If it is confirmed, leases may count from it. The request is sent when `send` is called, not when its answer is polled.
    pub(super) async fn write<T, F>(&self, timing: &impl Timing, send: impl FnOnce() -> F) -> Result<T, Fault>
    where
        F: Future<Output = Result<T, Fault>>,
    {
        let stamp = self.stamp(timing);
        let answer = send().await;
        if answer.is_ok() {
            self.confirm(stamp, timing);
        }
        answer
    }

    /// Sends one heartbeat for all tasks that ask while the one before is on its way: it begins after each of them asked. Sends none if
    /// the last one was confirmed and `will_do`. Returns the one that counts. `patience` ends when a heartbeat that is on its way should long
    /// have been answered.
    pub(super) async fn beat<W, P, S, B, F>(
        &self,
        timing: &impl Timing,
        will_do: W,
        patience: P,
        beat: B,
    ) -> Result<Stamp, Fault>
    where
        W: FnOnce(Stamp) -> bool,
        P: Fn() -> S,
        S: Future<Output = ()>,
        B: FnOnce() -> F,
        F: Future<Output = Result<(), Fault>>,
    {
        let asked = timing.now();
        let mut last = loop {
            let last = Arc::clone(&self.last.lock());
            tokio::select! {
                biased;
                last = Arc::clone(&last).lock_owned() => break last,
                () = patience() => self.forget(&last),
            }
        };
        if let Some((stamp, result)) = &*last
            && stamp.sent >= asked
        {
            return result.clone().map(|()| *stamp);
        }
        if let Some((stamp, Ok(()))) = &*last
            && will_do(*stamp)
        {
            return Ok(*stamp);
        }
        let stamp = self.stamp(timing);
        let result = match beat().await {
            Ok(()) if !self.confirm(stamp, timing) => Err(Fault::ConnectionLoss),
            result => result,
        };
        *last = Some((stamp, result.clone()));
        result.map(|()| stamp)
    }

    fn forget(&self, stuck: &Arc<Last>) {
        let mut last = self.last.lock();
        if Arc::ptr_eq(&last, stuck) {
            *last = Arc::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use futures_util::FutureExt;

    use super::*;

    /// The longest lease has 733 ms of validity, which begin no later than 216 ms after the leader heard of the session.
    const TIMEOUT: Duration = Duration::from_secs(1);

    /// Heartbeats, and a clock that goes on whenever it is read, and while a heartbeat is on its way.
    /// Also has the moment of the last connection.
    struct Clocked(Heartbeat, AtomicU64, AtomicU64);

    impl Timing for Clocked {
        fn now(&self) -> Moment {
            Moment::from_nanos(self.1.fetch_add(1, Ordering::Relaxed))
        }

        fn timeout(&self) -> Duration {
            TIMEOUT
        }

        fn asked(&self) -> Moment {
            Moment::from_nanos(self.2.load(Ordering::Relaxed))
        }
    }

    impl Clocked {
        fn new() -> Self {
            Self(Heartbeat::since(Moment::ZERO), AtomicU64::new(0), AtomicU64::new(0))
        }

        /// Returns the moment from which the longest lease counts.
        fn counts(&self) -> Moment {
            self.counted(self.0.confirmed())
        }

        fn counted(&self, stamp: Stamp) -> Moment {
            stamp.counts(self.timeout() * 5 / 6, self.timeout())
        }

        async fn beat(&self, will_do: bool, answer: Result<(), Fault>) -> (Result<Moment, Fault>, bool) {
            let mut sent = false;
            let beat = self.0.beat(
                self,
                |_| will_do,
                std::future::pending,
                || {
                    sent = true;
                    self.1.fetch_add(100, Ordering::Relaxed);
                    std::future::ready(answer)
                },
            );
            let moment = beat.await.map(|stamp| self.counted(stamp));
            (moment, sent)
        }
    }

    #[tokio::test]
    async fn a_heartbeat_that_will_do_counts_from_before_it_was_sent() {
        let clocked = Clocked::new();
        let before = clocked.now();
        let (first, sent) = clocked.beat(false, Ok(())).await;
        let first = first.unwrap();
        assert!(sent && first > before && first.plus(std::time::Duration::from_nanos(100)) < clocked.now());
        assert_eq!(clocked.beat(true, Ok(())).await, (Ok(first), false));
        let (second, sent) = clocked.beat(false, Ok(())).await;
        assert!(sent && second.unwrap() > first);
    }

    #[tokio::test]
    async fn a_write_counts_from_before_it_was_sent() {
        let clocked = Clocked::new();
        let before = clocked.now();
        let send = || {
            clocked.1.fetch_add(100, Ordering::Relaxed);
            std::future::ready(Ok(()))
        };
        clocked.0.write(&clocked, send).await.unwrap();
        assert!(clocked.counts() > before);
        assert!(clocked.counts().plus(std::time::Duration::from_nanos(100)) < clocked.now());
    }

    /// The first heartbeat is not driven any more, and has the lock that only one may have.
    #[tokio::test]
    async fn a_heartbeat_that_stands_still_is_in_the_way_of_no_other_one() {
        let clocked = Clocked::new();
        let impatient = AtomicU64::new(0);
        let patience = || {
            // Otherwise it would lose patience for ever, and never return.
            assert!(impatient.fetch_add(1, Ordering::Relaxed) < 10, "the first one is still in the way");
            std::future::ready(())
        };
        let beats = |answer| clocked.0.beat(&clocked, |_| false, patience, answer);
        let stuck = std::future::pending::<Result<(), Fault>>;
        let first = clocked.0.beat(&clocked, |_| false, std::future::pending::<()>, stuck);
        tokio::pin!(first);
        assert!((&mut first).now_or_never().is_none());
        let second = beats(|| std::future::ready(Ok(())));
        assert_eq!(second.now_or_never().expect("it waits for the first one"), Ok(clocked.0.confirmed()));
        let (third, sent) =
            clocked.beat(false, Ok(())).now_or_never().expect("nothing is in the way any more");
        assert!(sent && third == Ok(clocked.counts()));
    }

    #[tokio::test]
    async fn a_heartbeat_without_an_answer_never_will_do() {
        let clocked = Clocked::new();
        assert_eq!(clocked.beat(true, Err(Fault::Timeout)).await, (Err(Fault::Timeout), true));
        let (moment, sent) = clocked.beat(true, Ok(())).await;
        assert!(sent && moment == Ok(clocked.counts()));
        assert!(clocked.beat(false, Err(Fault::Timeout)).await.1 && clocked.counts() == moment.unwrap());
        assert!(clocked.beat(true, Ok(())).await.1, "the last one had no answer");
    }

    /// The process stood still, and the server to which it is connected dies before it reports what it has heard.
    #[tokio::test]
    async fn what_is_confirmed_after_a_silence_counts_from_a_fifth_after_the_last_sign() {
        let clocked = Clocked::new();
        clocked.1.store(900_000_000, Ordering::Relaxed);
        let from = clocked.counted(Stamp { sent: clocked.now(), heard: Moment::ZERO });
        assert_eq!(clocked.beat(false, Ok(())).await, (Ok(from), true));
        assert_eq!(clocked.beat(false, Ok(())).await, (Ok(from), true));
        let answer = || std::future::ready(Ok(()));
        clocked.0.write(&clocked, answer).await.unwrap();
        assert_eq!(clocked.counts(), from);
        assert!(clocked.0.confirmed().sent > Moment::from_nanos(900_000_000));
        clocked.1.fetch_add(200_000_000, Ordering::Relaxed);
        let before = clocked.now();
        assert!(clocked.beat(false, Ok(())).await.0.unwrap() > before, "the first one is reported by now");
    }

    #[tokio::test]
    async fn a_write_without_an_answer_is_no_sign_of_life() {
        let clocked = Clocked::new();
        clocked.1.store(900_000_000, Ordering::Relaxed);
        let refused = || std::future::ready(Err::<(), _>(Fault::Timeout));
        clocked.0.write(&clocked, refused).await.unwrap_err();
        clocked.beat(false, Err(Fault::Timeout)).await.0.unwrap_err();
        clocked.1.fetch_add(200_000_000, Ordering::Relaxed);
        let from = clocked.counted(Stamp { sent: clocked.now(), heard: Moment::ZERO });
        assert_eq!(clocked.beat(false, Ok(())).await.0, Ok(from));
    }

    /// The leader is asked about it, by the server to which the session comes.
    #[tokio::test]
    async fn a_session_that_goes_on_over_another_connection_was_heard_of_then() {
        let clocked = Clocked::new();
        clocked.1.store(900_000_000, Ordering::Relaxed);
        clocked.2.store(800_000_000, Ordering::Relaxed);
        let before = clocked.now();
        assert!(clocked.beat(false, Ok(())).await.0.unwrap() > before);
    }

    const MILLISECOND: u64 = 1_000_000;

    impl Clocked {
        /// Returns heartbeats whose clock shows so many milliseconds since their session was asked for.
        fn at(milliseconds: u64) -> Self {
            let clocked = Self::new();
            clocked.pass(milliseconds);
            clocked
        }

        fn pass(&self, milliseconds: u64) {
            self.1.fetch_add(milliseconds * MILLISECOND, Ordering::Relaxed);
        }

        /// Returns the milliseconds from which a write would count that is sent now.
        fn would_count_from(&self) -> u64 {
            self.counted(self.0.stamp(self)).as_nanos() / MILLISECOND
        }

        fn counts_from(&self) -> u64 {
            self.counts().as_nanos() / MILLISECOND
        }
    }

    #[test]
    fn a_session_is_a_write_and_a_sign_of_life() {
        let asked = Moment::from_nanos(500 * MILLISECOND);
        let begun = Clocked(Heartbeat::since(asked), AtomicU64::new(700 * MILLISECOND), AtomicU64::new(0));
        assert_eq!((begun.0.confirmed().sent, begun.counts()), (asked, asked));
        assert_eq!(begun.would_count_from(), 700);
    }

    #[test]
    fn a_request_is_a_sign_of_when_it_was_sent_once_its_answer_is_a_sixth_old() {
        let clocked = Clocked::at(900);
        clocked.0.answered(Moment::from_nanos(600 * MILLISECOND), &clocked);
        assert_eq!(clocked.would_count_from(), 216);
        clocked.pass(160);
        assert_eq!(clocked.would_count_from(), 216);
        clocked.pass(10);
        assert_eq!(clocked.would_count_from(), 816);
    }

    #[tokio::test]
    async fn a_write_is_a_sign_of_when_it_was_sent_once_its_answer_is_a_sixth_old() {
        let clocked = Clocked::at(100);
        let answered_late = || {
            clocked.pass(800);
            std::future::ready(Ok(()))
        };
        clocked.0.write(&clocked, answered_late).await.unwrap();
        assert_eq!(clocked.would_count_from(), 216);
        clocked.pass(170);
        assert_eq!(clocked.would_count_from(), 316);
    }

    /// The leader may have heard of that sign after the write, or not at all if the server dies behind its answer to the write.
    #[tokio::test]
    async fn what_is_reported_while_a_write_is_on_its_way_does_not_count_for_it() {
        for is_heartbeat in [false, true] {
            let clocked = Clocked::at(900);
            clocked.0.answered(Moment::from_nanos(900 * MILLISECOND), &clocked);
            let send = || async {
                clocked.pass(200);
                Ok(())
            };
            if is_heartbeat {
                let counts = clocked.0.beat(&clocked, |_| false, std::future::pending::<()>, send).await;
                assert_eq!(counts.unwrap().heard, Moment::ZERO);
            } else {
                clocked.0.write(&clocked, send).await.unwrap();
            }
            assert_eq!(clocked.counts_from(), 216);
        }
    }

    #[tokio::test]
    async fn a_write_that_is_answered_behind_a_later_one_takes_nothing_back() {
        let clocked = Clocked::at(10);
        let (answer, answered) = tokio::sync::oneshot::channel::<()>();
        let earlier = clocked.0.write(&clocked, || async move {
            answered.await.unwrap();
            Ok(())
        });
        tokio::pin!(earlier);
        assert!((&mut earlier).now_or_never().is_none());
        clocked.pass(100);
        clocked.0.write(&clocked, || std::future::ready(Ok(()))).await.unwrap();
        let known = (clocked.0.confirmed(), clocked.counts());
        answer.send(()).unwrap();
        earlier.await.unwrap();
        assert_eq!((clocked.0.confirmed(), clocked.counts()), known);
    }

    /// Two tasks ask while a heartbeat is on its way. The next one is for both, and counts as little for both.
    #[tokio::test]
    async fn a_shared_heartbeat_after_a_silence_counts_the_same_for_all_tasks() {
        let clocked = Clocked::at(900);
        let sent = AtomicU64::new(0);
        let beat = || {
            clocked.0.beat(
                &clocked,
                |_| false,
                std::future::pending::<()>,
                || async {
                    sent.fetch_add(1, Ordering::Relaxed);
                    tokio::task::yield_now().await;
                    Ok(())
                },
            )
        };
        let (first, second, third) = tokio::join!(beat(), beat(), beat());
        assert_eq!(second, third);
        assert!(first.unwrap().heard == Moment::ZERO && second.unwrap().heard == Moment::ZERO);
        assert_eq!(sent.load(Ordering::Relaxed), 2);
    }

    #[tokio::test]
    async fn whether_a_heartbeat_after_a_silence_will_do_is_decided_by_what_was_known_of_it() {
        let clocked = Clocked::at(900);
        assert!(clocked.beat(false, Ok(())).await.1);
        let first = clocked.0.confirmed();
        let (patience, sent) = (std::future::pending::<()>, || std::future::ready(Err(Fault::Timeout)));
        assert_eq!(clocked.0.beat(&clocked, |last| last == first, patience, sent).await, Ok(first));
    }

    /// A clock that looks whether another task could take a stamp at the moment.
    struct Alone<'a>(&'a Clocked);

    impl Timing for Alone<'_> {
        fn now(&self) -> Moment {
            assert!(self.0.0.known.try_lock().is_none(), "another task could be stamped in between");
            self.0.now()
        }

        fn timeout(&self) -> Duration {
            self.0.timeout()
        }

        fn asked(&self) -> Moment {
            self.0.asked()
        }
    }

    #[test]
    fn of_two_writes_the_later_one_is_that_of_which_more_is_known() {
        let clocked = Clocked::at(900);
        assert!(clocked.0.stamp(&Alone(&clocked)) < clocked.0.stamp(&Alone(&clocked)));
    }

    /// Otherwise it would let a contender in whose node goes with the session.
    #[tokio::test]
    async fn nothing_is_confirmed_of_a_session_that_was_given_up() {
        let clocked = Clocked::at(10);
        let (answer, answered) = tokio::sync::oneshot::channel::<()>();
        let write = clocked.0.write(&clocked, || async move {
            answered.await.unwrap();
            Ok(())
        });
        tokio::pin!(write);
        assert!((&mut write).now_or_never().is_none());
        let known = clocked.0.confirmed();
        assert!(clocked.0.covers(TIMEOUT / 2, &clocked));
        assert_eq!(clocked.0.end(TIMEOUT), Moment::ZERO.plus(TIMEOUT));
        answer.send(()).unwrap();
        write.await.unwrap();
        assert_eq!(clocked.beat(false, Ok(())).await, (Err(Fault::ConnectionLoss), true));
        assert!(clocked.0.confirmed() == known && !clocked.0.covers(TIMEOUT / 2, &clocked));
    }

    /// A fifth of the timeout is what the longest validity and the margin leave of it.
    #[test]
    fn the_longest_lease_ends_a_twentieth_before_the_leader_may_end_the_session_and_a_short_one_counts_from_its_write()
     {
        let clocked = Clocked::at(900);
        let stamp = clocked.0.stamp(&clocked);
        let ends = |lease| valid_until(stamp.counts(lease, TIMEOUT), lease).as_nanos() / MILLISECOND;
        assert_eq!(ends(TIMEOUT * 5 / 6), 950);
        assert_eq!(ends(TIMEOUT / 2), 950);
        assert_eq!(ends(TIMEOUT / 100), 907);
    }

    /// A lease that ends before cannot be prolonged, however often its holder tries.
    #[tokio::test]
    async fn a_lease_is_granted_after_a_silence_if_a_heartbeat_can_prolong_it() {
        for (silence, lease, is_granted) in
            [(300, 833, true), (700, 833, true), (760, 833, false), (900, 5, true), (300, 150, true)]
        {
            let clocked = Clocked::at(silence);
            assert!(clocked.beat(false, Ok(())).await.0.is_ok());
            let is_covered = clocked.0.covers(Duration::from_millis(lease), &clocked);
            assert_eq!(is_covered, is_granted, "{lease} after {silence}");
        }
    }

    /// In the very moment in which it ends it is of no use.
    #[test]
    fn a_lease_is_granted_up_to_the_moment_before_it_ends() {
        let (clocked, lease) = (Clocked::new(), TIMEOUT / 2);
        clocked.1.store(valid_until(Moment::ZERO, lease).as_nanos() - 1, Ordering::Relaxed);
        assert_eq!([(); 2].map(|()| clocked.0.covers(lease, &clocked)), [true, false]);
    }

    #[test]
    fn a_lease_is_granted_after_a_silence_if_it_ends_after_the_moment_for_its_next_heartbeat() {
        let end = Moment::ZERO.plus(TIMEOUT - TIMEOUT / MARGIN_PART);
        let latest = end.as_nanos() - (TIMEOUT / 6 + TIMEOUT / NEXT_PART).as_nanos() as u64;
        for (answered, is_granted) in [(latest - 1, true), (latest, false)] {
            let clocked = Clocked::at(900);
            let mut known = clocked.0.known.lock();
            known.confirmed = Stamp { sent: Moment::from_nanos(900 * MILLISECOND), heard: Moment::ZERO };
            known.signs.note(Moment::from_nanos(500 * MILLISECOND), Moment::from_nanos(answered), TIMEOUT);
            drop(known);
            assert_eq!(clocked.0.covers(TIMEOUT * 5 / 6, &clocked), is_granted);
        }
    }

    /// Two tasks wait for a heartbeat that stands still, and lose patience one after the other.
    #[tokio::test]
    async fn the_heartbeat_after_one_that_stands_still_is_the_only_one_on_its_way() {
        let clocked = Clocked::new();
        let (sent, is_over) = (AtomicU64::new(0), AtomicU64::new(0));
        let stuck = || {
            sent.fetch_add(1, Ordering::Relaxed);
            std::future::pending::<Result<(), Fault>>()
        };
        let once = || {
            std::future::poll_fn(|_| match is_over.swap(0, Ordering::Relaxed) {
                0 => std::task::Poll::Pending,
                _ => std::task::Poll::Ready(()),
            })
        };
        let beat = || clocked.0.beat(&clocked, |_| false, once, stuck);
        let (first, second, third) = (beat(), beat(), beat());
        tokio::pin!(first, second, third);
        assert!((&mut first).now_or_never().is_none());
        assert!((&mut third).now_or_never().is_none());
        for (waits, on_their_way) in [(second, 2), (third, 2)] {
            is_over.store(1, Ordering::Relaxed);
            assert!(waits.now_or_never().is_none());
            assert_eq!(sent.load(Ordering::Relaxed), on_their_way);
        }
    }
}
