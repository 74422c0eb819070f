//! Sets of locks: what they ask the store, what they bear, and what they tell.

#![allow(
    clippy::disallowed_methods,
    reason = "a test stands outside: it looks at time and starts tasks of its own"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep, timeout};
use ylock_core::engine::{Engine, Grant, Meter, Request};
use ylock_core::layer::{Acquisition, End, Outcome};
use ylock_core::{
    Error, ErrorKind, Guards, Layer, MemoryEngine, MemoryStore, MultiLock, Options, Owner, Result,
    TwoPhaseLocking, Unlocked, Ylock,
};
use ylock_testkit::{
    Call, CountsCalls, Log, LosesReplies, Outage, Slow, Wrapped, Wrapper, eventually, poll_once, within,
};

use crate::support::{Gate, Warped, over, runtime};

const SOON: Duration = Duration::from_secs(5);
const LEASE: Duration = Duration::from_secs(10);
const TRIP: Duration = Duration::from_millis(100);

fn set(ylock: &Ylock, names: &[&str]) -> MultiLock {
    names.iter().fold(ylock.multi_lock(), |many, name| many.write("group", *name))
}

async fn acquired(ylock: &Ylock, names: &[&str]) -> Guards {
    timeout(SOON, set(ylock, names).acquire()).await.expect("granted soon").unwrap()
}

/// Two clients of one store: the first goes through a fault.
fn pair(fault: &Arc<impl ylock_testkit::Fault>) -> (Ylock, Ylock) {
    let store = MemoryStore::new();
    (over(&store, fault), Ylock::new(store.engine()))
}

#[tokio::test(start_paused = true)]
async fn a_free_set_takes_as_long_as_one_lock() {
    let (ylock, _) = pair(&Arc::new(Slow::new(TRIP / 2, TRIP / 2)));
    for count in [1, 2, 20, 500] {
        let (start, many) =
            (Instant::now(), (0..count).fold(ylock.multi_lock(), |many, n| many.write("group", n)));
        let guards = many.acquire().await.unwrap();
        assert!(start.elapsed() < TRIP * 3 / 2, "{count} locks took {:?}", start.elapsed());
        assert_eq!(guards.unlock().await.unwrap(), Unlocked::Released);
        assert!(start.elapsed() < TRIP * 3, "{count} locks and their release took {:?}", start.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn one_time_is_for_all_locks_together() {
    let store = MemoryStore::new();
    let (here, there) = (Ylock::new(store.engine()), Ylock::new(store.engine()));
    let (first, second) = (acquired(&there, &["a"]).await, acquired(&there, &["b"]).await);
    let leaves = async {
        sleep(SOON * 3 / 5).await;
        drop(first);
    };
    let start = Instant::now();
    let (late, ()) = tokio::join!(set(&here, &["a", "b"]).acquire().within(SOON), leaves);
    assert!(late.unwrap().is_none());
    let took = start.elapsed();
    assert!(took >= SOON && took < SOON + Duration::from_millis(20), "{took:?}");
    drop(second);
    eventually(SOON, "nothing is left", || async { store.is_empty() }).await;
}

/// A store that answers nothing.
#[derive(Debug)]
struct Silent(MemoryEngine, Meter);

impl Wrapper for Silent {
    fn inner(&self) -> &dyn Engine {
        &self.0
    }

    fn meter(&self) -> &Meter {
        &self.1
    }

    async fn acquire(&self, _: &Request) -> Result<Option<Grant>> {
        self.1.measure(&*self.0.environment(), "acquire", std::future::pending()).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_time_that_ends_while_the_store_is_silent_is_no_contention() {
    let engine = Silent(MemoryEngine::new(), Meter::of("silent", "store:7"));
    let (here, start) = (Ylock::from_arc(Arc::new(Wrapped(engine))), Instant::now());
    let error = set(&here, &["a", "b"]).acquire().within(SOON).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(start.elapsed() < SOON + Duration::from_millis(20), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_set_bears_a_short_outage_as_a_single_lock_does_and_a_try_is_told() {
    let (single, tried) = (Arc::new(Outage::of(&[Call::Acquire])), Arc::new(Outage::of(&[Call::Acquire])));
    let (lock, there) = (pair(&single).0.lock("group", "a"), pair(&tried).0);
    let error = set(&there, &["a", "b"]).acquire().now().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    // The error of an engine that does not answer; one that has waited for a lease itself is told to the caller.
    let (by_lock, by_set) = (lock.write().await.is_err(), set(&there, &["a", "b"]).acquire().await.is_err());
    assert_eq!(by_lock, by_set);
    let once = Arc::new(LosesReplies::of(Call::Acquire, 1));
    let (here, _) = pair(&once);
    let guards = acquired(&here, &["a", "b", "c"]).await;
    assert!(guards.is_valid() && guards.len() == 3);
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_is_lost_beside_the_last_answer_is_taken_anew() {
    let warped = Warped::new();
    let store = MemoryStore::in_environment(Arc::clone(&warped) as _);
    let (here, there) = (Ylock::new(store.engine()), Ylock::new(store.engine()));
    let held = acquired(&there, &["b"]).await;
    let mut wants = Box::pin(set(&here, &["a", "b"]).acquire());
    assert!(poll_once(wants.as_mut()).await.is_none());
    // The machine is suspended until the validity of a is over, and no timer notices. The answer for b comes before any task has looked at a.
    warped.jump(LEASE * 19 / 20);
    drop(held);
    let guards = timeout(SOON, wants).await.expect("granted soon").unwrap();
    assert!(
        guards.is_valid() && guards.len() == 2,
        "a set was granted that had been lost: {:?}",
        guards.loss()
    );
}

#[tokio::test(start_paused = true)]
async fn a_set_that_is_lost_while_it_waits_leaves_the_queue() {
    let store = MemoryStore::new();
    let (outage, there) = (Arc::new(Outage::of(&[Call::Renew])), Ylock::new(store.engine()));
    let here = over(&store, &outage);
    let held = acquired(&there, &["b"]).await;
    let (many, mut seen) = (set(&here, &["a", "b", "c"]), Vec::new());
    let mut wants = Box::pin(many.acquire());
    assert!(poll_once(wants.as_mut()).await.is_none());
    let watch = async {
        for _ in 0..40 {
            sleep(LEASE / 10).await;
            seen.push(
                there.inspect("group", "a").await.unwrap().holders.first().and_then(|first| first.token),
            );
        }
        outage.end();
        drop(held);
    };
    let (guards, ()) = tokio::join!(&mut wants, watch);
    assert!(guards.unwrap().is_valid());
    seen.dedup();
    assert!(seen.iter().flatten().count() > 2, "it was taken anew each time that it was lost: {seen:?}");
}

/// Remembers everything.
#[derive(Clone, Debug, Default)]
struct Witness {
    seen: Arc<Mutex<Vec<String>>>,
    refuses: Option<&'static str>,
}

impl Witness {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.seen.lock())
    }

    fn note(&self, what: &str, who: &Acquisition, more: impl std::fmt::Debug) {
        self.seen.lock().push(format!("{what} {} {more:?}", who.key.name()));
    }
}

impl Layer for Witness {
    fn acquiring(&self, who: &Acquisition) -> Result<()> {
        self.note("acquiring", who, who.max_wait);
        if self.refuses == Some(who.key.name()) {
            return Err(Error::new(ErrorKind::Refused, "not this one"));
        }
        Ok(())
    }

    fn acquired(&self, who: &Acquisition, outcome: &Outcome, waited: Duration) {
        let outcome = match outcome {
            Outcome::Failed(error) => error.kind().as_str().to_owned(),
            outcome => format!("{outcome:?}"),
        };
        self.note("acquired", who, (outcome, waited.as_secs()));
    }

    fn ended(&self, who: &Acquisition, end: End, held: Duration) {
        self.note("ended", who, (end, held.as_secs()));
    }
}

#[tokio::test(start_paused = true)]
async fn layers_are_told_of_each_lock_once_from_the_beginning_of_the_set_to_its_end() {
    let (store, witness) = (MemoryStore::new(), Witness::default());
    let (here, there) = (Ylock::new(store.engine()).layer(witness.clone()), Ylock::new(store.engine()));
    let held = acquired(&there, &["b"]).await;
    let leaves = async {
        sleep(Duration::from_secs(2)).await;
        drop(held);
    };
    let (guards, ()) = tokio::join!(set(&here, &["c", "b", "a"]).acquire(), leaves);
    sleep(Duration::from_secs(3)).await;
    drop(guards.unwrap());
    let expected = [
        "acquiring a None",
        "acquiring b None",
        "acquiring c None",
        r#"acquired a ("Granted { waited: false }", 2)"#,
        r#"acquired b ("Granted { waited: true }", 2)"#,
        r#"acquired c ("Granted { waited: false }", 2)"#,
        "ended c (Released, 3)",
        "ended b (Released, 3)",
        "ended a (Released, 3)",
    ];
    assert_eq!(witness.take(), expected, "refused tries in between are not told");

    let held = acquired(&there, &["a"]).await;
    assert!(set(&here, &["a", "b"]).acquire().now().await.unwrap().is_none());
    let expected = [
        "acquiring a Some(0ns)",
        "acquiring b Some(0ns)",
        r#"acquired a ("NotFree", 0)"#,
        r#"acquired b ("NotFree", 0)"#,
    ];
    assert_eq!(witness.take(), expected);
    drop(poll_once(std::pin::pin!(set(&here, &["a"]).acquire())).await);
    assert_eq!(witness.take(), ["acquiring a None", r#"acquired a ("Cancelled", 0)"#]);
    drop(held);
}

#[tokio::test]
async fn a_layer_that_refuses_one_lock_refuses_the_set() {
    let (outer, inner) = (Witness::default(), Witness { refuses: Some("b"), ..Witness::default() });
    let ylock = Ylock::in_memory().layer(outer.clone()).layer(inner.clone());
    let error = set(&ylock, &["a", "b", "c"]).acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    let ends = [r#"acquired b ("refused", 0)"#, r#"acquired a ("refused", 0)"#];
    assert_eq!(outer.take()[2..], ends, "each beginning has an end");
    assert_eq!(inner.take()[2..], ends[1..], "not to the one that refused it");
    assert_eq!(ylock.keys_in_use(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_set_that_times_out_says_what_it_waited_for_and_who_was_before() {
    let store = MemoryStore::new();
    let here = Ylock::new(store.engine()).with_options(Options::default().with_max_wait(SOON));
    let there = Ylock::new(store.engine()).with_name("there").unwrap();
    let held = acquired(&there, &["b"]).await;
    let error = set(&here, &["a", "b", "c"]).acquire().await.unwrap_err();
    assert_eq!((error.kind(), error.key().unwrap().name()), (ErrorKind::TimedOut, "b"));
    let text = error.to_string();
    assert!(
        text.contains("a set of 3 locks") && text.contains("max_wait of the options, 5s: it had 1 of them"),
        "{text}"
    );
    assert!(text.contains("client \"there\" held it to write"), "{text}");
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_waits_for_itself_in_a_set_is_warned_of() {
    let (log, _listens) = Log::of(tracing::Level::WARN);
    let ylock = Ylock::in_memory();
    let _held = ylock.lock("group", "b").write().await.unwrap();
    assert!(timeout(SOON, set(&ylock, &["a", "b"]).acquire()).await.is_err());
    let warned = log.lines(&["a task waits for a lock that it has acquired itself", "sets.rs"]);
    assert_eq!(warned.len(), 1, "{}", log.text());
}

/// One time, in the middle of the acquisition of a set, the runtime of its caller ends.
#[test]
fn a_set_whose_runtime_ends_leaves_nothing() {
    let store = MemoryStore::new();
    let gate = Arc::new(Gate::before(Call::Acquire));
    let ylock = over(&store, &gate);
    let (ends, stays) = (runtime(), runtime());
    stays.block_on(async { drop(acquired(&ylock, &["z"]).await) });
    gate.close();
    let many = set(&ylock, &["a", "b", "c"]);
    ends.spawn(async move { many.acquire().await });
    stays.block_on(eventually(SOON, "all are tried", || async { gate.waiting() == 3 }));
    ends.shutdown_timeout(SOON);
    gate.open();
    stays.block_on(async {
        eventually(SOON, "nothing is in use", || async { ylock.keys_in_use() == 0 && store.is_empty() })
            .await;
        let other = Ylock::new(store.engine());
        drop(acquired(&other, &["a", "b", "c"]).await);
    });
}

#[tokio::test(start_paused = true)]
async fn what_an_owner_holds_in_sets_is_forgotten_with_the_last_guard() {
    let (ylock, owner) = (Ylock::in_memory(), Owner::new());
    let own = |names: &[&str]| set(&ylock, names).owned_by(&owner);
    let mut guards = own(&["a", "d"]).acquire().await.unwrap().into_guards();
    let waits = || async { own(&["b"]).acquire().await.map(drop).map_err(|error| error.kind()) };
    assert_eq!(waits().await, Err(ErrorKind::WouldDeadlock));
    drop(guards.pop());
    assert_eq!(waits().await, Err(ErrorKind::WouldDeadlock), "one guard of the set lives");
    let last = guards.pop().unwrap().downgrade().await.unwrap();
    assert_eq!(waits().await, Err(ErrorKind::WouldDeadlock), "one guard of the set lives");
    drop(last);
    assert_eq!(waits().await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_release_of_a_set_that_fails_gives_back_the_others() {
    let (outage, store) = (Arc::new(LosesReplies::hanging(Call::Release, 1)), MemoryStore::new());
    let (here, there) = (over(&store, &outage), Ylock::new(store.engine()));
    let guards = acquired(&here, &["a", "b", "c"]).await;
    let unlocking = tokio::spawn(guards.unlock());
    drop(acquired(&there, &["a", "b"]).await);
    drop(within(LEASE * 3, "it ends", unlocking).await.unwrap());
    eventually(LEASE, "nothing is left", || async { store.is_empty() }).await;
}

#[tokio::test(start_paused = true)]
async fn a_set_that_grows_asks_for_what_it_learnt_in_order() {
    let (counts, store) = (Arc::new(CountsCalls::default()), MemoryStore::new());
    let (here, there) = (over(&store, &counts), Ylock::new(store.engine()));
    let (held, runs) = (acquired(&there, &["a"]).await, AtomicUsize::new(0));
    let grown = here.two_phase_locking(|taking| {
        let run = runs.fetch_add(1, Ordering::SeqCst);
        async move {
            taking.read("group", "c").await?;
            taking.write("group", "a").await?;
            taking.write("group", "b").await?;
            Ok::<_, Error>(run)
        }
    });
    let leaves = async {
        sleep(LEASE).await;
        assert!(
            there.lock("group", "c").write().now().await.unwrap().is_some(),
            "it waits and holds what comes after"
        );
        drop(held);
    };
    let (run, ()) = tokio::join!(grown, leaves);
    assert_eq!(run.unwrap(), 1);
    // c and a; then, as a set, a and c; a anew, because it was not free, and c again with it; b at last.
    assert!(counts.of(Call::Acquire) <= 7, "{} requests", counts.of(Call::Acquire));
}

#[tokio::test(start_paused = true)]
async fn calls_of_one_closure_wait_for_each_other() {
    let store = MemoryStore::new();
    let (here, there) = (Ylock::new(store.engine()), Ylock::new(store.engine()));
    let held = acquired(&there, &["a"]).await;
    // Were both waited for at once, b would be there while a, which comes before it, is still waited for.
    let grown = here.two_phase_locking(|taking| async move {
        let (first, second) = tokio::join!(taking.write("group", "a"), taking.write("group", "b"));
        Ok::<_, Error>(first?.is_valid() && second?.is_valid())
    });
    let leaves = async {
        sleep(LEASE).await;
        assert!(
            there.lock("group", "b").write().now().await.unwrap().is_some(),
            "it holds b and waits for a"
        );
        drop(held);
    };
    let (both, ()) = tokio::join!(grown, leaves);
    assert!(both.unwrap());
}

/// Each run asks for one more lock that others hold.
#[tokio::test(start_paused = true)]
async fn a_set_that_begins_anew_again_and_again_is_warned_of() {
    const RUNS: usize = 9;
    let (log, _listens) = Log::of(tracing::Level::WARN);
    let store = MemoryStore::new();
    let (here, there) = (Ylock::new(store.engine()), Ylock::new(store.engine()));
    let names: Vec<_> = (0..RUNS).map(|number| format!("a{number}")).collect();
    let held = acquired(&there, &names.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let (runs, names) = (AtomicUsize::new(0), &names);
    let grown = here.two_phase_locking(|taking: TwoPhaseLocking| {
        let run = runs.fetch_add(1, Ordering::SeqCst);
        async move {
            taking.write("group", "z").await?;
            if let Some(name) = names.get(run) {
                taking.write("group", name).await?;
            }
            Ok::<_, Error>(run)
        }
    });
    let leave = async {
        for guard in held {
            sleep(LEASE).await;
            drop(guard);
        }
    };
    let (run, ()) = tokio::join!(grown, leave);
    assert_eq!(run.unwrap(), RUNS);
    let warned = log.lines(&["begins anew once more"]);
    assert_eq!(warned.len(), 2, "from the ninth run on: {warned:?}");
}

/// One of them could be granted while the other waits for a lock before its last one, and a third owner would close the ring.
#[tokio::test(start_paused = true)]
async fn an_owner_acquires_one_set_at_a_time() {
    let ylock = Ylock::in_memory();
    let held = ylock.lock("group", "a").write().await.unwrap();
    let owner = Owner::new();
    let set = |first, last| ylock.multi_lock().write("group", first).write("group", last).owned_by(&owner);
    let mut waits = Box::pin(set("a", "z").acquire());
    assert!(poll_once(waits.as_mut()).await.is_none());
    let refused =
        [set("b", "y").acquire().await.unwrap_err(), set("c", "d").acquire().now().await.unwrap_err()];
    for error in refused {
        assert_eq!(error.kind(), ErrorKind::WouldDeadlock, "{error}");
    }
    drop(held);
    drop(waits.await.unwrap());
    // The one that ended, or was dropped, is no more in the way.
    drop(set("b", "y").acquire().await.unwrap());
    let held = ylock.lock("group", "a").write().await.unwrap();
    assert!(timeout(SOON, set("a", "z").acquire()).await.is_err());
    drop(held);
    drop(set("b", "y").acquire().await.unwrap());
}
