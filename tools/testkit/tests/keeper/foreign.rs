//! Foreign code that panics: it costs other keys, holders and callers nothing. A test for each
//! place of the table in the keeper's documentation; of an engine that answers at once see
//! `at_once`.

#![allow(
    clippy::disallowed_methods,
    reason = "a test stands outside: it looks at time, and starts tasks of its own"
)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};
use tracing::Level;
use ylock_core::engine::{Engine, Grant, Holding, Inspection, Meter, Renewal, Request};
use ylock_core::environment::SystemEnvironment;
use ylock_core::layer::{ClientEvent, ClientView, TracingLayer};
use ylock_core::{
    Error, ErrorKind, Guard, Key, Layer, LossReason, MemoryEngine, MemoryStore, Options, Result, Unlocked,
    Ylock,
};
use ylock_testkit::{Call, Outage, Slow, Wrapped, Wrapper, eventually, poll_once};

use crate::support::{Asked, Gate, Notes, PanickingLog, comes, over, waits_with_panicking_waker};

const SOON: Duration = Duration::from_secs(5);
const LEASE: Duration = Duration::from_secs(10);
const KEYS: usize = 20;

/// Returns a client whose renewals of the key `away` fail.
fn with_one_away() -> Ylock {
    Ylock::from_arc(Notes::over(MemoryStore::new().engine(), |asked| match asked {
        Asked::Renew(holding) if holding.grant.key.name() == "away" => {
            Err(Error::new(ErrorKind::Unavailable, "no answer"))
        }
        _ => Ok(()),
    }))
}

/// Holds `away` before many other locks, and returns the guard of it and those of the others.
async fn holds_many(ylock: &Ylock) -> (Guard, Vec<Guard>) {
    let away = ylock.lock("group", "away").write().await.unwrap();
    let mut others = Vec::new();
    for number in 0..KEYS {
        others.push(ylock.lock("group", number).write().await.unwrap());
    }
    (away, others)
}

fn lost(guards: &[Guard]) -> usize {
    guards.iter().filter(|guard| !guard.is_valid()).count()
}

/// The loss of one lock is told in the round that has the others renewed.
#[tokio::test(start_paused = true)]
async fn a_log_that_panics_at_a_loss_ends_no_renewals() {
    let ylock = with_one_away();
    let (log, _log) = PanickingLog::of(Level::WARN);
    let (away, others) = holds_many(&ylock).await;
    assert_eq!(timeout(LEASE * 2, away.lost()).await.expect("it is told"), LossReason::Lapsed);
    sleep(LEASE * 3).await;
    assert!(log.told() > 0);
    assert_eq!(lost(&others), 0);
}

/// The answers to a batch of renewals are handled in a row.
#[tokio::test(start_paused = true)]
async fn a_log_that_panics_at_one_answer_costs_the_rest_of_a_batch_nothing() {
    let ylock = with_one_away();
    let (log, _log) = PanickingLog::of(Level::DEBUG);
    let (_away, others) = holds_many(&ylock).await;
    eventually(LEASE, "a renewal has failed", || async { log.told() > 0 }).await;
    sleep(LEASE * 3).await;
    assert_eq!(lost(&others), 0);
}

/// An engine that answers fewer renewals than it was asked for.
#[derive(Debug)]
struct Forgetful(MemoryEngine);

impl Wrapper for Forgetful {
    fn inner(&self) -> &dyn Engine {
        &self.0
    }

    async fn renew(&self, holdings: &[Holding]) -> Vec<Result<Renewal>> {
        self.0.renew(&holdings[..1]).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_an_engine_has_forgotten_is_asked_for_again() {
    let ylock = Ylock::from_arc(Arc::new(Wrapped(Forgetful(MemoryStore::new().engine()))));
    let two = [1, 2].map(|number| ylock.lock("group", number));
    let guards = [two[0].write().await.unwrap(), two[1].write().await.unwrap()];
    sleep(LEASE * 3).await;
    assert_eq!(lost(&guards), 0);
}

#[tokio::test(start_paused = true)]
async fn a_log_that_panics_at_a_release_that_failed_does_not_end_the_release() {
    let (store, outage) = (MemoryStore::new(), Arc::new(Outage::of(&[Call::Release])));
    let ylock = over(&store, &outage);
    let guard = ylock.lock("group", "name").write().await.unwrap();
    let (log, _log) = PanickingLog::of(Level::DEBUG);
    let unlocked = tokio::spawn(guard.unlock());
    eventually(SOON, "it has failed", || async { log.told() > 1 }).await;
    outage.end();
    let unlocked = timeout(SOON, unlocked).await.expect("it is stuck").unwrap();
    assert_eq!(unlocked.unwrap(), Unlocked::Released);
    assert_eq!(ylock.keys_in_use(), 0);
}

/// Two readers are let in by one change.
#[tokio::test(start_paused = true)]
async fn a_waker_that_panics_costs_the_reader_that_is_let_in_with_its_caller_nothing() {
    let slow = Arc::new(Slow::new(Duration::from_millis(40), Duration::from_millis(60)));
    let ylock = over(&MemoryStore::new(), &slow);
    let lock = ylock.lock("group", "name");
    let writes = lock.write().await.unwrap();
    let mut first = Box::pin(lock.read());
    let waker = waits_with_panicking_waker(&mut first);
    let (second, third) = (lock.clone(), lock.clone());
    let second = tokio::spawn(async move { second.read().await });
    eventually(SOON, "it waits", || async { ylock.usage()[0].waiting_read == 2 }).await;
    drop(writes);
    let second = timeout(SOON, second).await.expect("it is let in").unwrap().unwrap();
    assert!(waker.called() > 0);
    // Its executor may look at it all the same, or drop it.
    drop((timeout(SOON, first).await.expect("it was let in").unwrap(), second));
    drop(timeout(SOON, third.write()).await.expect("the key is stuck").unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_waker_that_panics_at_a_loss_costs_other_holders_nothing() {
    let store = MemoryStore::new();
    let ylock = Ylock::new(store.engine());
    let lock = ylock.lock("group", "name");
    let guards = [lock.read().await.unwrap(), lock.read().await.unwrap(), lock.read().await.unwrap()];
    let leases = guards.each_ref().map(Guard::lease);
    let mut waits = leases.each_ref().map(|lease| Box::pin(lease.lost()));
    let wakers = [waits_with_panicking_waker(&mut waits[0]), waits_with_panicking_waker(&mut waits[2])];
    let lease = guards[1].lease();
    let told = tokio::spawn(async move { (lease.lost().await, Instant::now()) });
    tokio::task::yield_now().await;
    let begun = Instant::now();
    ylock.revoke("group", "name").await.unwrap();
    let (reason, when) = timeout(LEASE * 2, told).await.expect("it is told").unwrap();
    assert_eq!(reason, LossReason::Revoked);
    // And not when the lease is over, which it sees by itself.
    assert!(when - begun < LEASE / 4, "{:?}", when - begun);
    assert_eq!(wakers.map(|waker| waker.called()), [1, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_waker_that_panics_at_the_end_of_closing_keeps_no_other_caller_waiting() {
    let gate = Arc::new(Gate::before(Call::Release));
    let ylock = over(&MemoryStore::new(), &gate);
    let guard = ylock.lock("group", "name").write().await.unwrap();
    gate.close();
    let mut first = Box::pin(ylock.close());
    let waker = waits_with_panicking_waker(&mut first);
    let other = ylock.clone();
    let second = tokio::spawn(async move { other.close().await });
    eventually(SOON, "it waits", || async { gate.waiting() == 1 }).await;
    gate.open();
    // Sooner than the bound of a close.
    timeout(LEASE, second).await.expect("it ends").unwrap();
    assert!(waker.called() > 0);
    drop(guard);
}

#[tokio::test(start_paused = true)]
async fn a_waker_that_panics_at_an_event_keeps_no_other_stream_waiting() {
    let ylock = Ylock::in_memory();
    let mut streams = [ylock.events(), ylock.events(), ylock.events()];
    let [first, second, third] = &mut streams;
    let (mut first, mut third) = (Box::pin(first.next()), Box::pin(third.next()));
    let wakers = [waits_with_panicking_waker(&mut first)];
    let mut second = Box::pin(second.next());
    assert!(poll_once(second.as_mut()).await.is_none());
    let wakers = [wakers, [waits_with_panicking_waker(&mut third)]].concat();
    let other = ylock.clone();
    tokio::spawn(async move { drop(other.lock("group", "name").write().await) });
    assert!(timeout(SOON, second).await.expect("it is told").is_some());
    assert!(wakers.iter().all(|waker| waker.called() == 1));
}

/// A store whose answers come over one connection: the test's own task.
#[derive(Clone, Debug)]
struct Connected {
    inner: MemoryEngine,
    /// What brings the answers that are not there yet.
    answers: Arc<Mutex<Vec<oneshot::Sender<()>>>>,
}

impl Connected {
    fn new() -> Self {
        Self { inner: MemoryStore::new().engine(), answers: Arc::default() }
    }

    async fn answered(&self) {
        let (sender, receiver) = oneshot::channel();
        self.answers.lock().push(sender);
        receiver.await.unwrap();
    }

    /// Brings all answers. Returns whether the connection has survived it.
    fn answer(&self) -> bool {
        let answers = std::mem::take(&mut *self.answers.lock());
        assert!(!answers.is_empty(), "it was not asked");
        let bring = || answers.into_iter().for_each(|answer| answer.send(()).unwrap());
        catch_unwind(AssertUnwindSafe(bring)).is_ok()
    }
}

impl Wrapper for Connected {
    fn inner(&self) -> &dyn Engine {
        &self.inner
    }

    async fn acquire(&self, request: &Request) -> Result<Option<Grant>> {
        self.answered().await;
        Engine::acquire(&self.inner, request).await
    }

    async fn inspect(&self, key: &Key) -> Result<Inspection> {
        self.answered().await;
        self.inner.inspect(key).await
    }
}

/// A caller drives what it has made necessary, and looks at the store by itself: the answer wakes
/// it directly.
#[tokio::test(start_paused = true)]
async fn a_waker_that_panics_at_an_answer_of_the_store_ends_no_connection() {
    let store = Connected::new();
    let ylock = Ylock::from_arc(Arc::new(Wrapped(store.clone())));
    let lock = ylock.lock("group", "name");
    let mut acquires = Box::pin(lock.write());
    let mut inspects = Box::pin(ylock.inspect("group", "name"));
    let wakers = [waits_with_panicking_waker(&mut acquires), waits_with_panicking_waker(&mut inspects)];
    assert!(store.answer(), "the connection has ended");
    assert_eq!(wakers.map(|waker| waker.called()), [1, 1]);
    assert!(poll_once(inspects.as_mut()).await.is_some());
    assert!(poll_once(acquires.as_mut()).await.is_some(), "it was answered");
}

/// Looks into the log, as many layers do.
#[derive(Debug)]
struct Logs;

impl Layer for Logs {
    fn client_event(&self, _: &ClientView, _: &ClientEvent) {
        tracing::error!("something has happened");
    }
}

/// That the layer has panicked is told to the log, which panics again.
#[tokio::test(start_paused = true)]
async fn a_layer_and_a_log_that_panic_together_do_not_keep_the_lock() {
    let (log, _log) = PanickingLog::of(Level::ERROR);
    let ylock = over(&MemoryStore::new(), &Arc::new(Slow::new(LEASE / 100, LEASE / 100))).layer(Logs);
    for _ in 0..2 {
        let guard = ylock.lock("group", "name").write().await.unwrap();
        sleep(LEASE * 2).await;
        assert!(guard.is_valid() && guard.unlock().await.unwrap().is_released());
    }
    assert!(log.told() > 0);
    assert_eq!(ylock.keys_in_use(), 0);
}

/// It is told in the middle of a request.
#[tokio::test]
async fn a_log_that_panics_when_the_store_goes_away_and_is_back_does_not_change_an_answer() {
    let (log, _log) = PanickingLog::of(Level::INFO);
    let (meter, environment) = (Meter::of("engine", "store:7"), SystemEnvironment::shared());
    let away = async { Err::<(), _>(Error::new(ErrorKind::Unavailable, "no answer")) };
    let answer = meter.measure(&*environment, "asks", away).await;
    assert_eq!((answer.unwrap_err().kind(), log.told()), (ErrorKind::Unavailable, 1));
    meter.measure(&*environment, "asks", async { Ok(()) }).await.unwrap();
    assert_eq!(log.told(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_log_that_panics_at_one_long_hold_is_told_of_the_others() {
    let ylock = Ylock::in_memory().layer(TracingLayer::new().with_slow_hold(LEASE));
    let (_away, _others) = holds_many(&ylock).await;
    let (log, _log) = PanickingLog::of(Level::WARN);
    sleep(LEASE * 2).await;
    assert_eq!(log.told(), KEYS + 1);
    let again = ylock.lock("group", "again").write().await.unwrap();
    sleep(LEASE * 2).await;
    assert_eq!(log.told(), KEYS + 2, "it looks on");
    drop(again);
}

/// A second panic in the middle of the first one would end the process.
#[tokio::test(start_paused = true)]
async fn a_log_that_panics_at_the_ends_of_spans_ends_no_acquisition() {
    let (_, _log) = PanickingLog::of(Level::DEBUG);
    let ylock = Ylock::in_memory().layer(TracingLayer::new());
    let guard = ylock.lock("group", "name").write().await.unwrap();
    assert!(guard.unlock().await.unwrap().is_released());
}

#[tokio::test(start_paused = true)]
async fn a_log_that_panics_at_the_warning_of_a_self_wait_does_not_end_the_wait() {
    let ylock = Ylock::in_memory();
    let lock = ylock.lock("group", "name");
    let (log, _log) = PanickingLog::of(Level::WARN);
    let guard = lock.write().await.unwrap();
    let mut waits = comes(&lock, ylock_core::Mode::Write).await;
    assert!(timeout(SOON, waits.as_mut()).await.is_err(), "it waits on");
    assert_eq!(log.told(), 1);
    drop(guard);
    drop(timeout(SOON, waits).await.expect("it is let in").unwrap());
}

/// As of a program whose last clone goes while it unwinds.
#[tokio::test(start_paused = true)]
async fn a_log_that_panics_when_a_client_is_dropped_does_not_end_the_caller() {
    let hangs = Notes::over(MemoryStore::new().engine(), |asked| match asked {
        Asked::Release(..) => Err(Error::new(ErrorKind::Unavailable, "no answer")),
        _ => Ok(()),
    });
    let ylock = Ylock::from_arc(hangs);
    drop(ylock.lock("group", "name").write().await.unwrap());
    let (log, _log) = PanickingLog::of(Level::WARN);
    assert_eq!(ylock.keys_in_use(), 1);
    drop(ylock);
    assert_eq!(log.told(), 1);
}

/// The work is done, and the lock was lost in the same moment.
#[tokio::test(start_paused = true)]
async fn a_log_that_panics_at_the_end_of_work_does_not_take_its_result() {
    let outage = Arc::new(Outage::of(&[Call::Release]));
    let ylock = over(&MemoryStore::new(), &outage);
    let lease = Options::default().with_lease(Duration::from_secs(1));
    let (log, _log) = PanickingLog::of(Level::WARN);
    let done = ylock.lock("group", "name").with_options(lease).write().run(async |_| 7).await;
    assert_eq!(done.unwrap(), 7);
    assert!(log.told() > 0);
}
