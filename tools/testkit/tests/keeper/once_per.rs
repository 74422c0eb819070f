//! A job under everything that can go wrong on its way to the store, seed by seed: answers that get lost, writes that arrive leases later, outages in
//! which the lock is lost, clocks that differ and step, calls that are dropped. No period may be begun twice; and with each of two mistakes of the store
//! some seed must show that one is.

#![allow(
    clippy::disallowed_methods,
    reason = "a test stands outside: it looks at paused time and starts tasks of its own"
)]

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::time::{Instant, sleep, timeout};
use ylock_core::engine::{Engine, Holding, Renewal};
use ylock_core::{Error, ErrorKind, JobRun, Key, MemoryEngine, MemoryStore, Options, Period, Result, Ylock};
use ylock_testkit::{Call, Fault, WallClock, Wrapped, Wrapper};

use crate::support::over;

const LEASE: Duration = Duration::from_secs(1);
const PERIOD: Duration = Duration::from_secs(5);
const LASTS: Duration = Duration::from_secs(90);
const CLIENTS: usize = 3;
/// The beginning of a period, in microseconds since 1970.
const BEGIN: i64 = 1_800_000_000_000_000;
const SEEDS: u64 = 60;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mistake {
    None,
    /// What is written last counts, also if it was on its way for long.
    LateWritesCount,
    /// Says that it has a run before it has.
    AnswersTooEarly,
}

/// What all clients see.
#[derive(Debug)]
struct Store {
    memory: MemoryStore,
    mistake: Mistake,
    last: Mutex<Option<JobRun>>,
    chance: Mutex<StdRng>,
    /// How often the work of each period was begun.
    begun: Mutex<HashMap<i64, usize>>,
}

impl Store {
    fn below(&self, most: u64) -> u64 {
        self.chance.lock().random_range(0..most)
    }

    fn time(&self, most: Duration) -> Duration {
        Duration::from_millis(self.below(u64::try_from(most.as_millis()).unwrap() + 1))
    }

    fn write(&self, run: &JobRun) -> bool {
        let mut last = self.last.lock();
        let replaces = last.as_ref().is_none_or(|last| run.replaces(last));
        if replaces || self.mistake == Mistake::LateWritesCount {
            *last = Some(run.clone());
        }
        replaces || self.mistake == Mistake::LateWritesCount
    }

    fn write_later(self: &Arc<Self>, run: &JobRun, after: Duration) {
        let (store, run) = (Arc::clone(self), run.clone());
        tokio::spawn(async move {
            sleep(after).await;
            store.write(&run);
        });
    }
}

/// The way of one client to the store.
#[derive(Debug)]
struct Way {
    memory: MemoryEngine,
    store: Arc<Store>,
    is_out: AtomicBool,
}

#[derive(Debug)]
struct Client(Arc<Way>);

fn error(kind: ErrorKind) -> Error {
    Error::new(kind, "trouble on the way")
}

impl Wrapper for Client {
    fn inner(&self) -> &dyn Engine {
        &self.0.memory
    }

    async fn renew(&self, holdings: &[Holding]) -> Vec<Result<Renewal>> {
        if self.0.is_out.load(Ordering::SeqCst) {
            return holdings.iter().map(|_| Err(error(ErrorKind::Unavailable))).collect();
        }
        self.0.memory.renew(holdings).await
    }

    async fn last_run(&self, _: &Key) -> Result<Option<JobRun>> {
        sleep(self.0.store.time(LEASE / 20)).await;
        if self.0.is_out.load(Ordering::SeqCst) {
            return Err(error(ErrorKind::Unavailable));
        }
        Ok(self.0.store.last.lock().clone())
    }

    async fn store_run(&self, _: &Key, run: &JobRun, _: Duration) -> Result<bool> {
        let store = &self.0.store;
        let long = store.time(LEASE * 3);
        match store.below(10) {
            0 => return Err(error(ErrorKind::Unavailable)),
            1 | 2 => {
                store.write_later(run, long);
                return Err(error(ErrorKind::Indeterminate));
            }
            3 => sleep(long).await,
            _ => sleep(store.time(LEASE / 20)).await,
        }
        if store.mistake == Mistake::AnswersTooEarly {
            store.write_later(run, store.time(LEASE * 3));
            return Ok(true);
        }
        let is_written = store.write(run);
        match store.below(8) {
            0 => Err(error(ErrorKind::Indeterminate)),
            1 => {
                sleep(long).await;
                Ok(is_written)
            }
            _ => Ok(is_written),
        }
    }
}

/// Shows a wall clock that goes, is wrong, and steps; and makes outages.
async fn trouble(way: Arc<Way>, clock: WallClock, since: Instant) {
    let mut wrong = i64::try_from(way.store.below(2_000_000)).unwrap();
    let (mut begins, mut ends) = (way.store.time(LASTS / 4), Duration::ZERO);
    loop {
        let now = since.elapsed();
        clock.set(BEGIN + wrong + i64::try_from(now.as_micros()).unwrap());
        if now >= begins {
            ends = now + way.store.time(LEASE * 3);
            begins = ends + way.store.time(LASTS / 8);
            wrong = i64::try_from(way.store.below(3_000_000)).unwrap() - 1_000_000;
        }
        way.is_out.store(now < ends, Ordering::SeqCst);
        sleep(Duration::from_millis(20)).await;
    }
}

async fn replica(client: Ylock, store: Arc<Store>, since: Instant) {
    let jobs = client.locks("jobs").with_options(Options::default().with_lease(LEASE));
    while since.elapsed() < LASTS {
        let lasts = store.time(if store.below(4) == 0 { PERIOD } else { LEASE / 2 });
        let work = |scheduled: ylock_core::JobLease| {
            *store.begun.lock().entry(scheduled.run().period_micros()).or_default() += 1;
            sleep(lasts)
        };
        let patience = store.time(PERIOD * 4);
        // What goes wrong is expected; what was begun counts. But one that has lost the lock is told so, and nothing of a store that has lost tokens.
        if let Ok(Err(error)) = timeout(patience, jobs.once_per("report", Period::of(PERIOD), work)).await {
            assert!(store.mistake != Mistake::None || error.kind() != ErrorKind::Unexpected, "{error}");
        }
        sleep(store.time(PERIOD / 4)).await;
    }
}

/// Returns how often each period was begun that was.
fn run(seed: u64, mistake: Mistake) -> Vec<usize> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let store = Arc::new(Store {
            memory: MemoryStore::new(),
            mistake,
            last: Mutex::default(),
            chance: Mutex::new(StdRng::seed_from_u64(seed)),
            begun: Mutex::default(),
        });
        let (since, mut replicas) = (Instant::now(), Vec::new());
        for _ in 0..CLIENTS {
            let (memory, clock) = (store.memory.engine(), WallClock::at(BEGIN));
            let way = Arc::new(Way { memory, store: Arc::clone(&store), is_out: AtomicBool::new(false) });
            let client = Ylock::from_arc(clock.over(Arc::new(Wrapped(Client(Arc::clone(&way))))));
            tokio::spawn(trouble(way, clock, since));
            replicas.push(tokio::spawn(replica(client, Arc::clone(&store), since)));
        }
        for replica in replicas {
            replica.await.unwrap();
        }
        let begun = store.begun.lock();
        begun.values().copied().collect()
    })
}

#[test]
fn no_period_is_begun_twice_whatever_goes_wrong() {
    let mut periods = 0;
    for seed in 0..ylock_testkit::short_or_long(SEEDS, SEEDS * 100) {
        let begun = run(seed, Mistake::None);
        assert!(begun.iter().all(|times| *times == 1), "seed {seed}: {begun:?}");
        periods += begun.len();
    }
    // Otherwise this would show nothing.
    assert!(periods > 5 * 60, "only {periods} periods were run at all");
}

#[test]
fn a_store_that_makes_a_mistake_is_found_out() {
    for mistake in [Mistake::LateWritesCount, Mistake::AnswersTooEarly] {
        let found = (0..500).find(|seed| run(*seed, mistake).iter().any(|times| *times > 1));
        println!("{mistake:?}: seed {found:?}");
        assert!(found.is_some(), "{mistake:?} is not found");
    }
}

/// Answers the first look at the last run, and so many after that not at all.
#[derive(Debug)]
struct SilentLooks {
    looks: AtomicUsize,
    silent: usize,
}

#[async_trait]
impl Fault for SilentLooks {
    async fn before(&self, call: Call) -> Result<()> {
        let looks = if call == Call::LastRun { self.looks.fetch_add(1, Ordering::SeqCst) } else { 0 };
        if (1..=self.silent).contains(&looks) { Err(error(ErrorKind::Unavailable)) } else { Ok(()) }
    }

    async fn after(&self, _: Call) -> Result<()> {
        Ok(())
    }
}

/// Under the lock a look is borne as an acquisition bears it, and no longer: others wait for the lock meanwhile.
#[tokio::test(start_paused = true)]
async fn a_look_under_the_lock_that_is_not_answered_is_asked_for_again_for_one_lease() {
    let options = Options::default().with_lease(LEASE * 10);
    for (silent, does_run) in [(5, true), (usize::MAX - 1, false)] {
        let store = MemoryStore::new();
        let looks = Arc::new(SilentLooks { looks: AtomicUsize::new(0), silent });
        let ylock = over(&store, &looks).with_options(options.clone());
        let jobs = ylock.locks("jobs");
        let began = Instant::now();
        let ran = timeout(LEASE * 20, jobs.once_per("report", Period::of(PERIOD), |_| async {})).await;
        match (does_run, ran.expect("it ends")) {
            (true, ran) => assert!(ran.is_ok(), "{ran:?}"),
            (false, ran) => {
                assert_eq!(ran.unwrap_err().kind(), ErrorKind::Unavailable);
                assert!(began.elapsed() >= LEASE * 9, "{:?}", began.elapsed());
            }
        }
        let other = Ylock::new(store.engine()).with_options(options.clone());
        drop(timeout(LEASE, other.locks("jobs").write("report")).await.expect("it is free").unwrap());
    }
}
