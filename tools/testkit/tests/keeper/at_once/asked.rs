//! An engine that answers at once: what becomes of its callers, also of those that come in the middle of a call, and where it has to wait,
//! fails or panics.

#![allow(clippy::disallowed_methods, reason = "a test stands outside: it starts tasks of its own")]

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::time::timeout;
use ylock_core::engine::{AcquisitionId, AtOnce, Engine, Grant, Release, Request};
use ylock_core::layer::{ClientEvent, Event};
use ylock_core::{
    Error, ErrorKind, Guard, HandOver, Key, Lock, MemoryEngine, MemoryStore, Options, Result, Unlocked, Ylock,
};
use ylock_testkit::{Wrapped, Wrapper, poll_once};

use crate::support::{current_thread, waits_with_panicking_waker};

/// Less than the 10 ms for which a caller may have a driver to itself: what comes so soon was waited for by nothing else.
const SOON: Duration = Duration::from_millis(5);

/// What a call does in place of its answer, the store having done what it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Instead {
    Fails,
    /// The fault of the first waiter alone.
    Refuses,
    Panics,
}

type Work = Box<dyn FnOnce() + Send>;

/// What happens at the next call that is answered at once.
#[derive(Default)]
struct Next {
    /// Once the store has done what it was asked.
    meanwhile: Mutex<Option<Work>>,
    instead: Mutex<Option<Instead>>,
}

impl Next {
    fn meanwhile(&self, work: impl FnOnce() + Send + 'static) {
        *self.meanwhile.lock() = Some(Box::new(work));
    }

    fn answer<T>(&self, answer: Result<T>) -> Result<T> {
        let work = self.meanwhile.lock().take();
        work.into_iter().for_each(|work| work());
        let instead = self.instead.lock().take();
        match instead {
            None => answer,
            Some(Instead::Fails) => Err(Error::new(ErrorKind::Indeterminate, "no answer")),
            Some(Instead::Refuses) => Err(Error::new(ErrorKind::Config, "not so")),
            Some(Instead::Panics) => std::panic::resume_unwind(Box::new("an engine that is wrong")),
        }
    }
}

/// An engine that answers at once, and counts the calls that it was asked to wait in.
struct Answers {
    inner: MemoryEngine,
    next: Arc<Next>,
    waits: Arc<AtomicUsize>,
}

impl fmt::Debug for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answers").finish_non_exhaustive()
    }
}

impl AtOnce for Answers {
    fn acquire(&self, request: &Request) -> Option<Result<Option<Grant>>> {
        let answer = AtOnce::acquire(&self.inner, request);
        match answer {
            Some(answer) => Some(self.next.answer(answer)),
            None => self.next.answer(Ok(())).err().map(Err),
        }
    }

    fn release(&self, key: &Key, id: AcquisitionId, next: Option<&Request>) -> Result<Release> {
        self.next.answer(AtOnce::release(&self.inner, key, id, next))
    }
}

impl Wrapper for Answers {
    fn inner(&self) -> &dyn Engine {
        &self.inner
    }

    fn at_once(&self) -> Option<&dyn AtOnce> {
        Some(self)
    }

    async fn acquire(&self, request: &Request) -> Result<Option<Grant>> {
        self.waits.fetch_add(1, Ordering::SeqCst);
        Engine::acquire(&self.inner, request).await
    }

    async fn release(&self, key: &Key, id: AcquisitionId, next: Option<&Request>) -> Result<Release> {
        self.waits.fetch_add(1, Ordering::SeqCst);
        Engine::release(&self.inner, key, id, next).await
    }
}

struct Stage {
    store: MemoryStore,
    next: Arc<Next>,
    waits: Arc<AtomicUsize>,
    ylock: Ylock,
}

impl Stage {
    fn set() -> Self {
        let (store, next, waits) = (MemoryStore::new(), Arc::<Next>::default(), Arc::default());
        let engine = Answers { inner: store.engine(), next: Arc::clone(&next), waits: Arc::clone(&waits) };
        Self { store, next, waits, ylock: Ylock::from_arc(Arc::new(Wrapped(engine))) }
    }

    fn lock(&self) -> Lock {
        self.ylock.lock("group", "name")
    }

    /// The lock, for another client of the store.
    fn elsewhere(&self) -> Lock {
        Ylock::new(self.store.engine()).lock("group", "name")
    }

    /// Has the next call end like this.
    fn instead(&self, what: Instead) {
        *self.next.instead.lock() = Some(what);
    }

    fn waits(&self) -> usize {
        self.waits.load(Ordering::SeqCst)
    }

    fn is_idle(&self) -> bool {
        self.store.is_empty() && self.ylock.keys_in_use() == 0
    }
}

async fn soon<T>(waits: impl Future<Output = T>) -> T {
    timeout(SOON, waits).await.expect("in time")
}

/// Begins to acquire, and returns what goes on with it.
async fn begun(lock: Lock) -> std::pin::Pin<Box<dyn Future<Output = Result<Guard>> + Send>> {
    let mut waits = Box::pin(async move { lock.write().await });
    assert!(poll_once(waits.as_mut()).await.is_none(), "it waits");
    waits
}

#[tokio::test(start_paused = true)]
async fn a_pair_waits_for_nothing_and_starts_no_task() {
    let stage = Stage::set();
    // The tasks that a client has for itself are there from the first lock on.
    drop(stage.lock().write().await);
    let tasks = || Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    for _ in 0..3 {
        let guard = stage.lock().write().await.unwrap();
        assert_eq!(guard.unlock().await.unwrap(), Unlocked::Released);
        drop(stage.lock().read().await.unwrap());
        assert!(stage.is_idle());
    }
    assert_eq!((stage.waits(), tasks()), (0, before));
}

#[test]
fn a_guard_that_is_dropped_where_no_runtime_lives_is_given_back_there() {
    let (stage, guard) = current_thread().block_on(async {
        let stage = Stage::set();
        let guard = stage.lock().write().await.unwrap();
        (stage, guard)
    });
    drop(guard);
    assert!(stage.is_idle());
    assert_eq!(stage.waits(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_another_client_holds_refuses_a_try_at_once_and_leaves_nothing() {
    let stage = Stage::set();
    let guard = stage.elsewhere().write().await.unwrap();
    assert!(stage.lock().write().now().await.unwrap().is_none());
    assert_eq!((stage.waits(), stage.ylock.keys_in_use()), (0, 0));
    assert!(stage.ylock.inspect("group", "name").await.unwrap().queue.is_empty());
    drop(guard);
    assert!(stage.is_idle());
}

#[tokio::test(start_paused = true)]
async fn a_contender_that_has_to_wait_gets_a_driver_and_its_turn() {
    let stage = Stage::set();
    let guard = stage.elsewhere().write().await.unwrap();
    let waits = begun(stage.lock()).await;
    // The call that may wait was made by then, by the caller itself.
    assert_eq!(stage.waits(), 1);
    assert_eq!(stage.ylock.inspect("group", "name").await.unwrap().queue.len(), 1);
    drop(guard);
    assert_eq!(soon(soon(waits).await.unwrap().unlock()).await.unwrap(), Unlocked::Released);
    assert!(stage.is_idle());
}

/// The store has joined it to the queue already when it says that it has to wait.
#[tokio::test(start_paused = true)]
async fn a_contender_that_has_to_wait_keeps_its_place() {
    let stage = Stage::set();
    let guard = stage.elsewhere().write().await.unwrap();
    let (later, store) = (Arc::new(Mutex::new(None)), stage.store.clone());
    let slot = Arc::clone(&later);
    stage.next.meanwhile(move || {
        let other = Ylock::new(store.engine()).lock("group", "name");
        *slot.lock() = Some(tokio::spawn(async move { other.write().await }));
    });
    let waits = begun(stage.lock()).await;
    tokio::task::yield_now().await;
    drop(guard);
    let own = soon(waits).await.unwrap();
    let later = later.lock().take().unwrap();
    assert!(!later.is_finished(), "it came later");
    drop(own);
    drop(soon(later).await.unwrap().unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_gives_up_leaves_nothing() {
    let stage = Stage::set();
    let guard = stage.elsewhere().write().await.unwrap();
    drop(begun(stage.lock()).await);
    tokio::task::yield_now().await;
    tokio::task::yield_now().await;
    assert!(stage.ylock.inspect("group", "name").await.unwrap().queue.is_empty());
    drop(guard);
    assert!(stage.is_idle());
}

/// The thread that is in the call sees to the waiter too.
#[tokio::test(start_paused = true)]
async fn a_caller_that_comes_in_the_middle_of_a_release_is_let_in() {
    let stage = Stage::set();
    let guard = stage.lock().write().await.unwrap();
    let (arrival, lock) = (Arc::new(Mutex::new(None)), stage.lock());
    let slot = Arc::clone(&arrival);
    stage.next.meanwhile(move || {
        let mut waits = Box::pin(async move { lock.write().await });
        assert!(futures_util::FutureExt::now_or_never(&mut waits).is_none(), "it is being given back");
        *slot.lock() = Some(waits);
    });
    assert_eq!(guard.unlock().await.unwrap(), Unlocked::Released);
    let waits = arrival.lock().take().unwrap();
    drop(soon(waits).await.unwrap());
    assert_eq!(stage.waits(), 0);
    assert!(stage.is_idle());
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_comes_in_the_middle_of_an_acquisition_waits_behind_it() {
    let stage = Stage::set();
    let (arrival, lock) = (Arc::new(Mutex::new(None)), stage.lock());
    let slot = Arc::clone(&arrival);
    stage.next.meanwhile(move || {
        let mut waits = Box::pin(async move { lock.write().await });
        assert!(futures_util::FutureExt::now_or_never(&mut waits).is_none(), "another one is before it");
        *slot.lock() = Some(waits);
    });
    let first = stage.lock().write().await.unwrap();
    let mut second = arrival.lock().take().unwrap();
    assert!(poll_once(second.as_mut()).await.is_none());
    let first_token = first.token();
    drop(first);
    assert!(soon(second).await.unwrap().token() > first_token);
    assert!(stage.is_idle());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_is_closed_in_the_middle_of_an_acquisition_gives_it_back() {
    let stage = Stage::set();
    let (closing, ylock) = (Arc::new(Mutex::new(None)), stage.ylock.clone());
    let slot = Arc::clone(&closing);
    stage.next.meanwhile(move || {
        let mut closes = Box::pin(async move { ylock.close().await });
        assert!(futures_util::FutureExt::now_or_never(&mut closes).is_none(), "a call is under way");
        *slot.lock() = Some(closes);
    });
    let error = stage.lock().write().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed);
    assert!(stage.is_idle());
    let closes = closing.lock().take().unwrap();
    soon(closes).await;
}

/// The attempt whose answer was lost may be the reason why it is gone.
#[tokio::test(start_paused = true)]
async fn a_release_that_fails_is_tried_again_by_a_driver_and_no_loss() {
    for what in [Instead::Fails, Instead::Panics] {
        let stage = Stage::set();
        let guard = stage.lock().write().await.unwrap();
        stage.instead(what);
        assert_eq!(guard.unlock().await.unwrap(), Unlocked::Released, "{what:?}");
        assert_eq!(stage.waits(), 1);
        assert!(stage.is_idle());
    }
}

#[tokio::test(start_paused = true)]
async fn an_acquisition_that_fails_is_told_and_undone() {
    for what in [Instead::Fails, Instead::Panics] {
        let stage = Stage::set();
        stage.instead(what);
        let error = soon(stage.lock().write()).await.unwrap_err();
        let kind = if what == Instead::Fails { ErrorKind::Indeterminate } else { ErrorKind::Unexpected };
        assert_eq!(error.kind(), kind);
        assert!(error.to_string().contains("memory"), "{error}");
        assert!(stage.is_idle());
        drop(soon(stage.lock().write()).await.unwrap());
    }
}

/// What follows at once from a change is told behind it.
#[tokio::test(start_paused = true)]
async fn a_hold_ends_before_its_release() {
    let stage = Stage::set();
    let mut events = stage.ylock.events();
    for _ in 0..2 {
        drop(stage.lock().write().await.unwrap());
    }
    let told = std::iter::from_fn(|| events.try_next()).filter_map(|event| match event {
        Event::ClientEvent(ClientEvent::HoldEnded { .. }) => Some("hold"),
        Event::ClientEvent(ClientEvent::ReleaseEnded { .. }) => Some("release"),
        _ => None,
    });
    assert_eq!(told.collect::<Vec<_>>(), ["hold", "release", "hold", "release"]);
}

/// Many waiters of two clients take turns, each time over a release that is answered at once.
#[tokio::test(start_paused = true)]
async fn all_waiters_of_two_clients_get_their_turn() {
    let stage = Stage::set();
    let inside = Arc::new(AtomicUsize::new(0));
    let tasks: Vec<_> = (0..200)
        .map(|number| {
            let lock = if number % 2 == 0 { stage.lock() } else { stage.elsewhere() };
            let inside = Arc::clone(&inside);
            tokio::spawn(async move {
                let guard = lock.write().await.unwrap();
                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "one at a time");
                tokio::task::yield_now().await;
                inside.fetch_sub(1, Ordering::SeqCst);
                drop(guard);
            })
        })
        .collect();
    for task in tasks {
        timeout(Duration::from_secs(60), task).await.expect("in time").unwrap();
    }
    assert!(stage.is_idle());
}

/// The first waiter is told of a failure in the middle of what one call does, and its waker panics
/// there: what was still to be done is done.
#[tokio::test(start_paused = true)]
async fn a_waker_that_panics_in_the_middle_costs_no_other_waiter_anything() {
    let stage = Stage::set();
    let none = HandOver::up_to(0, Duration::ZERO);
    let lock = stage.lock().with_options(Options::default().with_hand_over(none));
    let guard = lock.write().await.unwrap();
    let first = lock.clone();
    let mut fails = Box::pin(async move { first.write().await });
    let waker = waits_with_panicking_waker(&mut fails);
    let second = begun(lock.clone()).await;
    let next = Arc::clone(&stage.next);
    // Not the release, but the acquisition that follows it.
    stage.next.meanwhile(move || {
        let failing = Arc::clone(&next);
        next.meanwhile(move || *failing.instead.lock() = Some(Instead::Refuses));
    });
    drop(guard);
    assert_eq!(waker.called(), 1);
    drop(timeout(Duration::from_secs(60), second).await.expect("the key is stuck").unwrap());
    assert_eq!(fails.await.unwrap_err().kind(), ErrorKind::Config);
    timeout(Duration::from_secs(60), stage.ylock.close()).await.unwrap();
    assert!(stage.is_idle());
}
