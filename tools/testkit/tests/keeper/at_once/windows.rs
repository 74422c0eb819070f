//! By seed, anything happens in every window of a call that is answered at once: before the store is asked, and after it has done
//! what it was asked, while the keeper does not know of it yet. Answers may fail or panic too.

#![allow(clippy::disallowed_methods, reason = "a test stands outside")]

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use parking_lot::Mutex;
use ylock_core::engine::{AcquisitionId, AtOnce, Engine, Grant, Release, Request};
use ylock_core::environment::Environment;
use ylock_core::{
    Error, ErrorKind, Fairness, Guard, HandOver, Key, Lock, MemoryEngine, MemoryStore, Mode, Options, Owner,
    Result, Unlocked, Ylock,
};
use ylock_testkit::{Wrapped, Wrapper, eventually};

use crate::support::{Warped, paused};

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
}

type Waits = Pin<Box<dyn Future<Output = Result<Option<Guard>>> + Send>>;
type Other = Pin<Box<dyn Future<Output = ()> + Send>>;

#[derive(Default)]
struct Things {
    waits: Vec<Waits>,
    guards: Vec<Guard>,
    others: Vec<Other>,
}

struct World {
    random: Mutex<Random>,
    things: Mutex<Things>,
    environment: Arc<Warped>,
    store: MemoryStore,
    clients: Mutex<Vec<Ylock>>,
    old: Mutex<Vec<Ylock>>,
    depth: AtomicUsize,
    quiet: AtomicUsize,
    counts: [AtomicUsize; 12],
    options: Vec<Options>,
    owners: Vec<Owner>,
    this: std::sync::OnceLock<std::sync::Weak<World>>,
}

impl World {
    fn below(&self, n: u64) -> u64 {
        self.random.lock().below(n)
    }

    fn count(&self, what: usize) {
        self.counts[what].fetch_add(1, Ordering::SeqCst);
    }

    fn client(&self) -> Ylock {
        let clients = self.clients.lock();
        let which = self.random.lock().below(clients.len() as u64);
        clients[which as usize].clone()
    }

    fn fresh(self: &Arc<Self>) -> Ylock {
        let engine = Windows { inner: self.store.engine(), world: Arc::downgrade(self) };
        Ylock::from_arc(Arc::new(Wrapped(engine)))
    }

    fn lock(&self) -> Lock {
        let options = self.options[self.below(self.options.len() as u64) as usize].clone();
        let name = ["a", "b"][usize::from(self.below(4) == 0)];
        let mut lock = self.client().lock("group", name).with_options(options);
        if self.below(8) == 0 {
            lock = lock.owned_by(&self.owners[self.below(2) as usize]);
        }
        lock
    }

    /// One thing happens.
    fn act(&self) {
        let what = self.below(26);
        match what {
            0..8 => {
                let (lock, reads, kind) = (self.lock(), self.below(2) == 0, self.below(6));
                let waits: Waits = Box::pin(async move {
                    match (kind, reads) {
                        (0, false) => lock.write().now().await,
                        (0, true) => lock.read().now().await,
                        (1, false) => lock.write().within(Duration::from_millis(7)).await,
                        (1, true) => lock.read().within(Duration::from_millis(7)).await,
                        (_, false) => lock.write().await.map(Some),
                        (_, true) => lock.read().await.map(Some),
                    }
                });
                self.count(0);
                self.poll(waits);
            }
            8..10 => {
                if let Some(waits) = self.take(|things| &mut things.waits) {
                    self.count(1);
                    drop(waits);
                }
            }
            10..13 => {
                if let Some(waits) = self.take(|things| &mut things.waits) {
                    self.poll(waits);
                }
            }
            13..16 => {
                if let Some(guard) = self.take(|things| &mut things.guards) {
                    self.count(2);
                    drop(guard);
                }
            }
            16..20 => {
                if let Some(guard) = self.take(|things| &mut things.guards) {
                    self.count(3);
                    let lost = guard.loss().is_some();
                    let was_valid = guard.is_valid();
                    let other: Other = Box::pin(async move {
                        match guard.unlock().await {
                            Ok(Unlocked::Released) => {
                                assert!(!lost && was_valid, "released, and was lost before")
                            }
                            Ok(Unlocked::WasLost) => {}
                            Err(error) => assert!(
                                matches!(error.kind(), ErrorKind::Indeterminate | ErrorKind::Unexpected),
                                "{error:?}"
                            ),
                        }
                    });
                    self.poll_other(other);
                }
            }
            20 => {
                if let Some(guard) = self.take(|things| &mut things.guards) {
                    self.count(4);
                    let this = self.this.get().unwrap().clone();
                    let other: Other = Box::pin(async move {
                        if let (Ok(guard), Some(world)) = (guard.downgrade().await, this.upgrade()) {
                            world.things.lock().guards.push(guard);
                        }
                    });
                    self.poll_other(other);
                }
            }
            21 => {
                if let Some(other) = self.take(|things| &mut things.others) {
                    if self.below(3) == 0 { drop(other) } else { self.poll_other(other) }
                }
            }
            22 => {
                if self.below(6) == 0 {
                    self.count(5);
                    self.environment.jump(Duration::from_millis(self.below(14_000)));
                }
            }
            23 => {
                if self.below(6) == 0 {
                    self.count(6);
                    let fresh = self.this.get().unwrap().upgrade().unwrap().fresh();
                    let old = {
                        let mut clients = self.clients.lock();
                        let which = self.random.lock().below(clients.len() as u64) as usize;
                        std::mem::replace(&mut clients[which], fresh)
                    };
                    self.old.lock().push(old.clone());
                    self.poll_other(Box::pin(async move {
                        old.close().await;
                    }));
                }
            }
            24 => {
                if self.below(3) == 0 {
                    self.count(7);
                    let client = self.client();
                    self.poll_other(Box::pin(async move { drop(client.revoke("group", "a").await) }));
                }
            }
            _ => {
                let client = self.client();
                self.poll_other(Box::pin(async move { drop(client.inspect("group", "a").await) }));
                drop(self.client().usage());
            }
        }
        self.check();
    }

    fn take<T>(&self, of: impl FnOnce(&mut Things) -> &mut Vec<T>) -> Option<T> {
        let mut things = self.things.lock();
        let all = of(&mut things);
        if all.is_empty() {
            return None;
        }
        let which = self.random.lock().below(all.len() as u64) as usize;
        Some(all.swap_remove(which))
    }

    fn poll(&self, mut waits: Waits) {
        let waker = futures_util::task::noop_waker();
        match waits.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Pending => self.things.lock().waits.push(waits),
            Poll::Ready(answer) => self.answered(answer),
        }
    }

    fn answered(&self, answer: Result<Option<Guard>>) {
        match answer {
            Ok(Some(guard)) => {
                self.count(8);
                self.things.lock().guards.push(guard);
            }
            Ok(None) => self.count(9),
            Err(error) => {
                self.count(10);
                assert!(
                    matches!(
                        error.kind(),
                        ErrorKind::Closed
                            | ErrorKind::WouldDeadlock
                            | ErrorKind::Indeterminate
                            | ErrorKind::Unexpected
                            | ErrorKind::Unavailable
                    ),
                    "{error:?}"
                );
            }
        }
    }

    fn poll_other(&self, mut other: Other) {
        let waker = futures_util::task::noop_waker();
        if other.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
            self.things.lock().others.push(other);
        }
    }

    fn check(&self) {
        let things = self.things.lock();
        let valid: Vec<&Guard> = things.guards.iter().filter(|guard| guard.is_valid()).collect();
        for (place, one) in valid.iter().enumerate() {
            for other in &valid[place + 1..] {
                let conflicts = one.mode() == Mode::Write || other.mode() == Mode::Write;
                if one.key() == other.key() && one.owner() != other.owner() && conflicts {
                    assert!(!(one.is_valid() && other.is_valid()), "two valid holders: {one:?} {other:?}");
                }
            }
        }
    }

    /// What happens in a window.
    fn window(&self) {
        if self.quiet.load(Ordering::SeqCst) > 0
            || self.depth.load(Ordering::SeqCst) >= 3
            || self.below(3) > 0
        {
            return;
        }
        self.depth.fetch_add(1, Ordering::SeqCst);
        for _ in 0..=self.below(3) {
            self.act();
        }
        self.depth.fetch_sub(1, Ordering::SeqCst);
    }

    /// Whether a call fails.
    fn fails(&self) -> Result<()> {
        if self.quiet.load(Ordering::SeqCst) > 0 {
            return Ok(());
        }
        match self.below(60) {
            0..3 => {
                self.count(11);
                Err(Error::new(ErrorKind::Indeterminate, "no answer"))
            }
            3 => std::panic::resume_unwind(Box::new("an engine that is wrong")),
            _ => Ok(()),
        }
    }
}

struct Windows {
    inner: MemoryEngine,
    world: std::sync::Weak<World>,
}

impl fmt::Debug for Windows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Windows")
    }
}

impl Windows {
    fn around<T>(&self, call: impl FnOnce() -> T) -> Result<T> {
        let Some(world) = self.world.upgrade() else { return Ok(call()) };
        world.window();
        world.fails()?;
        let answer = call();
        world.window();
        world.fails()?;
        Ok(answer)
    }
}

impl AtOnce for Windows {
    fn acquire(&self, request: &Request) -> Option<Result<Option<Grant>>> {
        match self.around(|| AtOnce::acquire(&self.inner, request)) {
            Ok(answer) => answer,
            Err(error) => Some(Err(error)),
        }
    }

    fn release(&self, key: &Key, id: AcquisitionId, next: Option<&Request>) -> Result<Release> {
        self.around(|| AtOnce::release(&self.inner, key, id, next))?
    }
}

impl Wrapper for Windows {
    fn inner(&self) -> &dyn Engine {
        &self.inner
    }

    fn at_once(&self) -> Option<&dyn AtOnce> {
        Some(self)
    }

    async fn acquire(&self, request: &Request) -> Result<Option<Grant>> {
        self.around(|| ())?;
        Engine::acquire(&self.inner, request).await
    }

    async fn release(&self, key: &Key, id: AcquisitionId, next: Option<&Request>) -> Result<Release> {
        self.around(|| ())?;
        Engine::release(&self.inner, key, id, next).await
    }
}

fn run(seed: u64) -> [usize; 12] {
    let runtime = paused();
    let _inside = runtime.enter();
    let environment = Warped::new();
    let hand = |count, millis| {
        Options::default().with_hand_over(HandOver::up_to(count, Duration::from_millis(millis)))
    };
    let world = Arc::new(World {
        random: Mutex::new(Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)),
        things: Mutex::default(),
        store: MemoryStore::in_environment(Arc::clone(&environment) as Arc<dyn Environment>),
        environment,
        clients: Mutex::default(),
        old: Mutex::default(),
        depth: AtomicUsize::new(0),
        quiet: AtomicUsize::new(0),
        counts: Default::default(),
        options: vec![
            Options::default(),
            Options::default(),
            hand(0, 0),
            hand(1, 5),
            Options::default().with_lease(Duration::from_secs(12)),
            Options::default().with_fairness(Fairness::Strict),
            Options::default().with_fairness(Fairness::Unfair),
        ],
        owners: vec![Owner::new(), Owner::new()],
        this: std::sync::OnceLock::new(),
    });
    world.this.set(Arc::downgrade(&world)).unwrap();
    let clients = vec![world.fresh(), world.fresh()];
    *world.clients.lock() = clients;
    runtime.block_on(async {
        for _ in 0..60 {
            world.act();
            match world.below(12) {
                0 => tokio::task::yield_now().await,
                1 => tokio::time::sleep(Duration::from_millis(world.below(40))).await,
                2 if world.below(5) == 0 => {
                    tokio::time::sleep(Duration::from_millis(world.below(4_000))).await
                }
                _ => {}
            }
        }
        // From here on all goes well: every waiter must get its turn.
        world.quiet.fetch_add(1, Ordering::SeqCst);
        let mut rounds = 0;
        loop {
            let (waits, guards, others) = {
                let mut things = world.things.lock();
                (
                    std::mem::take(&mut things.waits),
                    std::mem::take(&mut things.guards),
                    std::mem::take(&mut things.others),
                )
            };
            if waits.is_empty() && guards.is_empty() && others.is_empty() {
                break;
            }
            drop(guards);
            others.into_iter().for_each(|other| world.poll_other(other));
            waits.into_iter().for_each(|waits| world.poll(waits));
            world.check();
            tokio::time::sleep(Duration::from_millis(50)).await;
            rounds += 1;
            if rounds > 4_000 {
                let things = world.things.lock();
                panic!(
                    "seed {seed}: after 200 s {} wait still, {} others",
                    things.waits.len(),
                    things.others.len()
                );
            }
        }
        eventually(Duration::from_secs(60), "nothing is left", || async {
            let in_use = |all: &Mutex<Vec<Ylock>>| all.lock().iter().map(Ylock::keys_in_use).sum::<usize>();
            world.store.is_empty() && in_use(&world.clients) == 0 && in_use(&world.old) == 0
        })
        .await;
    });
    std::array::from_fn(|place| world.counts[place].load(Ordering::SeqCst))
}

#[test]
fn nothing_breaks_in_any_window() {
    let seeds = ylock_testkit::short_or_long(300, 15_000);
    let mut all = [0; 12];
    for seed in 1..=seeds {
        let counts = std::panic::catch_unwind(|| run(seed)).unwrap_or_else(|_| panic!("seed {seed}"));
        all.iter_mut().zip(counts).for_each(|(all, one)| *all += one);
    }
    eprintln!(
        "arrived, gave up, dropped, unlocked, downgraded, jumped, closed, revoked, granted, refused, failed, engine failed: {all:?}"
    );
}
