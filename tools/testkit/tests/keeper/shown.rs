//! What the store is told while a client has the lock: whether it still writes, and which of its waiters wait behind it.

#![allow(clippy::disallowed_methods, reason = "a test stands outside: it looks at time")]

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};
use ylock_core::engine::{Holding, Request};
use ylock_core::{Fairness, Guard, HandOver, Lock, LossReason, MemoryStore, Mode, Options, Ylock};
use ylock_testkit::{Wrapped, eventually};

use crate::support::{Notes, Waits, Warped, comes};

/// Less than the time until a renewal that is not asked for.
const SOON: Duration = Duration::from_secs(1);
const LEASE: Duration = Duration::from_secs(10);
/// The lease may not be relied on any more, but the store has it still.
const LAPSED: Duration = Duration::from_millis(9_500);
const HOUR: Duration = Duration::from_secs(3600);

/// A client, what it has told the store, and the store.
struct Here {
    ylock: Ylock,
    notes: Arc<Wrapped<Notes>>,
    store: MemoryStore,
}

impl Here {
    fn new() -> Self {
        Self::with(MemoryStore::new())
    }

    fn with(store: MemoryStore) -> Self {
        let notes = Notes::over(store.engine(), |_| Ok(()));
        Self { ylock: Ylock::from_arc(notes.clone()), notes, store }
    }

    fn lock(&self, options: Options) -> Lock {
        self.ylock.lock("group", "name").with_options(options)
    }

    /// Returns what the store was told last, once that is as expected.
    async fn tells(&self, what: &str, expected: impl Fn(&Holding) -> bool) -> Holding {
        let last = || self.notes.0.renewals().pop();
        eventually(SOON, what, || async { last().is_some_and(|told| expected(&told)) }).await;
        last().expect("it was told")
    }
}

fn lasting(lease: Duration) -> Options {
    Options::default().with_lease(lease)
}

fn strict() -> Options {
    Options::default().with_fairness(Fairness::Strict)
}

async fn soon(waits: Waits) -> Guard {
    timeout(SOON, waits).await.expect("granted soon").unwrap()
}

/// A reader that a writer has handed its lock to, and a writer that waits for the reader.
async fn reader_between_writers(here: &Here, last: Options) -> (Guard, Waits) {
    let first = here.lock(Options::default()).write().await.unwrap();
    let reader = comes(&here.lock(Options::default()), Mode::Read).await;
    let writer = comes(&here.lock(last), Mode::Write).await;
    drop(first);
    (soon(reader).await, writer)
}

#[tokio::test(start_paused = true)]
async fn a_reader_between_two_writers_of_a_client_costs_no_request() {
    let here = Here::new();
    let (reader, writer) = reader_between_writers(&here, Options::default()).await;
    drop(reader);
    drop(soon(writer).await);
    assert!(here.notes.0.renewals().is_empty());
    assert_eq!(here.notes.0.acquired().len(), 1);
}

/// The lock is not kept for a writer that must ask the store anyhow: readers elsewhere would wait for nothing.
#[tokio::test(start_paused = true)]
async fn a_reader_shows_that_it_only_reads_before_a_writer_that_cannot_have_its_grant() {
    for options in [strict(), lasting(HOUR).with_hand_over(HandOver::up_to(1000, HOUR))] {
        let here = Here::new();
        let (reader, writer) = reader_between_writers(&here, options).await;
        let told = here.tells("it reads", |told| told.grant.mode == Mode::Read).await;
        assert_eq!(told.next.map(|next| next.mode), Some(Mode::Write));
        drop(reader);
        drop(soon(writer).await);
    }
}

/// Nothing happens here when the time is over for which a client may keep a lock to itself.
#[tokio::test(start_paused = true)]
async fn readers_elsewhere_enter_when_the_lock_was_kept_for_a_writer_for_long_enough() {
    let here = Here::new();
    let (reader, writer) = reader_between_writers(&here, Options::default()).await;
    let there = Ylock::new(here.store.engine());
    let elsewhere = there.lock("group", "name");
    assert!(elsewhere.read().now().await.unwrap().is_none(), "it is kept for the writer");
    here.tells("it reads", |told| told.grant.mode == Mode::Read).await;
    let unfair = elsewhere.with_options(Options::default().with_fairness(Fairness::Unfair));
    drop(timeout(SOON, unfair.read()).await.expect("soon").unwrap());
    assert!(reader.is_valid());
    drop(reader);
    drop(soon(writer).await);
}

#[tokio::test(start_paused = true)]
async fn the_time_for_which_a_lock_is_kept_may_end_between_two_renewals() {
    let (here, four) = (Here::new(), Duration::from_secs(4));
    let patient = Options::default().with_hand_over(HandOver::up_to(1000, four));
    let (reader, writer) = reader_between_writers(&here, patient).await;
    sleep(four - Duration::from_millis(10)).await;
    let modes = || here.notes.0.renewals().into_iter().map(|told| told.grant.mode).collect::<Vec<_>>();
    assert_eq!(modes(), [Mode::Write]);
    here.tells("it reads", |told| told.grant.mode == Mode::Read).await;
    drop(reader);
    drop(soon(writer).await);
}

/// It is renewed as if it were not kept.
#[tokio::test(start_paused = true)]
async fn a_lock_that_is_kept_for_a_writer_for_long_is_renewed_when_it_is_due() {
    let here = Here::new();
    let patient = Options::default().with_hand_over(HandOver::up_to(1000, HOUR));
    let (reader, writer) = reader_between_writers(&here, patient).await;
    sleep(LEASE * 2).await;
    assert!(reader.is_valid());
    assert!((5..=7).contains(&here.notes.0.renewals().len()), "{:?}", here.notes.0.renewals());
    assert!(here.notes.0.renewals().iter().all(|told| told.grant.mode == Mode::Write));
    drop(reader);
    drop(soon(writer).await);
}

/// It could not enter, and has not waited.
#[tokio::test(start_paused = true)]
async fn a_reader_that_only_tries_does_not_cost_a_writer_its_hand_over() {
    let here = Here::new();
    let (reader, writer) = reader_between_writers(&here, Options::default()).await;
    sleep(Duration::from_millis(1)).await;
    let unfair = Options::default().with_fairness(Fairness::Unfair).with_hand_over(HandOver::up_to(0, HOUR));
    assert!(here.lock(unfair).read().now().await.unwrap().is_none());
    drop(reader);
    drop(soon(writer).await);
    assert!(here.notes.0.renewals().is_empty());
    assert_eq!(here.notes.0.acquired().len(), 1);
}

/// Two readers that follow a writer have no writer between them.
#[tokio::test(start_paused = true)]
async fn readers_that_are_handed_a_lock_together_have_one_token() {
    let here = Here::new();
    let first = here.lock(Options::default()).write().await.unwrap();
    let lock = here.lock(Options::default());
    let readers = (comes(&lock, Mode::Read).await, comes(&lock, Mode::Read).await);
    let writer = comes(&here.lock(Options::default()), Mode::Write).await;
    drop(first);
    let (one, other) = (soon(readers.0).await, soon(readers.1).await);
    assert_eq!(one.token(), other.token());
    drop((one, other));
    drop(soon(writer).await);
}

/// A reader that another client's writer keeps out is before no contender of the store.
#[tokio::test(start_paused = true)]
async fn only_a_writer_is_announced() {
    let here = Here::new();
    let held = here.lock(Options::default()).read().await.unwrap();
    let there = Ylock::new(here.store.engine());
    let elsewhere = comes(&there.lock("group", "name"), Mode::Write).await;
    eventually(SOON, "it waits", || async {
        here.ylock.inspect("group", "name").await.unwrap().queue.len() == 1
    })
    .await;
    sleep(Duration::from_secs(1)).await;
    let waits = comes(&here.lock(Options::default()), Mode::Read).await;
    here.tells("it looked", |_| true).await;
    sleep(LEASE).await;
    assert!(held.is_valid());
    assert!(here.notes.0.renewals().iter().all(|told| told.next.is_none()));
    drop(held);
    drop(soon(elsewhere).await);
    drop(soon(waits).await);
}

/// A reader and, behind it, a writer that the store was told of.
async fn announced(here: &Here, writer: Options) -> (Guard, Waits, Request) {
    let reader = here.lock(Options::default()).read().await.unwrap();
    let writer = comes(&here.lock(writer), Mode::Write).await;
    let told = here.tells("it is announced", |told| told.next.is_some()).await;
    (reader, writer, told.next.expect("it is there"))
}

#[tokio::test(start_paused = true)]
async fn a_writer_that_was_announced_goes_on_at_its_place() {
    let here = Here::new();
    let (reader, writer, announced) = announced(&here, Options::default()).await;
    drop(reader);
    drop(soon(writer).await);
    assert_eq!(here.notes.0.releases()[0].1, Some(announced.id));
}

/// The place would end before the pause is over that the next one wants to survive.
#[tokio::test(start_paused = true)]
async fn a_writer_that_needs_a_longer_lease_does_not_take_the_place_of_one_that_gave_up() {
    let here = Here::new();
    let (reader, gave_up, announced) = announced(&here, Options::default()).await;
    let longer = comes(&here.lock(lasting(HOUR)), Mode::Write).await;
    drop(gave_up);
    drop(reader);
    let guard = soon(longer).await;
    assert!(guard.remaining() > HOUR / 2, "{:?}", guard.remaining());
    assert_ne!(here.notes.0.releases()[0].1, Some(announced.id));
}

/// The writer gives up at the moment at which the lock turns out to be lost. Its place is that of a writer, and the next waiter reads.
#[tokio::test(start_paused = true)]
async fn what_a_lost_grant_has_announced_is_asked_for_no_other_waiter() {
    let warped = Warped::new();
    let here = Here::with(MemoryStore::in_environment(warped.clone()));
    let (reader, gave_up, announced) = announced(&here, Options::default()).await;
    let next = comes(&here.lock(Options::default()), Mode::Read).await;
    warped.jump(LAPSED);
    drop(gave_up);
    let next = soon(next).await;
    assert_eq!(reader.loss(), Some(LossReason::Lapsed));
    let followed = here.notes.0.followed().expect("it is asked at once");
    assert_eq!((followed.mode, followed.id != announced.id), (Mode::Read, true));
    drop(next);
}
