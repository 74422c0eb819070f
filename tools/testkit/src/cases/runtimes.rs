//! Runtimes that end while their client is used in others, or not used for a while.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use ylock_core::{Mode, Options, Unlocked};

use crate::{Client, Fixture, eventually, within};

/// A runtime beside that of the case. It ends when `end` is called, with all that runs in it.
struct Elsewhere(Option<Runtime>);

impl Elsewhere {
    fn new() -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        Self(Some(runtime.expect("a runtime can be built")))
    }

    async fn run<F>(&self, future: F) -> F::Output
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.runtime().spawn(future).await.expect("no panic")
    }

    fn start(&self, future: impl Future<Output: Send> + Send + 'static) {
        drop(self.runtime().spawn(future));
    }

    fn runtime(&self) -> &Runtime {
        self.0.as_ref().expect("it has not ended")
    }

    async fn end(mut self) {
        let runtime = self.0.take();
        // It waits for its threads, and must not do that in an asynchronous task.
        tokio::task::spawn_blocking(move || drop(runtime)).await.expect("no panic");
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Far less than the leases of these cases, which are so long that nothing gets free by their end.
fn at_once(fixture: &Fixture) -> Duration {
    fixture.harness().trip() * 10 + Duration::from_secs(1)
}

async fn client_from(elsewhere: &Elsewhere, fixture: &Fixture) -> Client {
    let fixture = fixture.clone();
    elsewhere.run(async move { fixture.client().await }).await
}

async fn waits_in(elsewhere: &Elsewhere, client: &Client, mode: Mode) {
    let waiting = client.clone();
    elsewhere.start(async move { drop(waiting.acquire_whenever(mode).await) });
}

/// A client goes on when the runtime has ended in which it was made and used.
pub async fn a_client_goes_on_in_another_runtime(fixture: Fixture) {
    let there = fixture.client().await;
    let elsewhere = Elsewhere::new();
    let here = client_from(&elsewhere, &fixture).await;
    let used = here.clone();
    elsewhere.run(async move { drop(used.write().await) }).await;
    elsewhere.end().await;
    let guard = within(at_once(&fixture), "granted in this runtime", here.lock.write()).await.unwrap();
    assert!(there.try_acquire(Mode::Write).await.is_none());
    let waiting = there.queue_up(Mode::Write).await;
    assert_eq!(here.look().await.holders.len(), 1);
    let unlocked = within(at_once(&fixture), "given back in this runtime", guard.unlock()).await;
    assert_eq!(unlocked.unwrap(), Unlocked::Released);
    let held = waiting.guard().await;
    let again = here.queue_up(Mode::Write).await;
    drop(held);
    within(at_once(&fixture), "told in this runtime", again.visit()).await;
    within(at_once(&fixture), "closed in this runtime", here.close()).await;
}

/// Holders in a runtime that lives keep their locks when another one ends in which the client was made and first used.
pub async fn holders_outlive_the_runtime_in_which_their_client_began(fixture: Fixture) {
    let there = fixture.client().await;
    let elsewhere = Elsewhere::new();
    let inside = fixture.clone();
    let here = elsewhere.run(async move { inside.short_lived().await }).await;
    let (used, group) = (here.clone(), fixture.group());
    let other = elsewhere.run(async move { used.lock(group, "other").write().await.unwrap() }).await;
    let guard = here.write().await;
    elsewhere.end().await;
    fixture.leases(3.0).await;
    assert!(guard.is_valid() && other.is_valid(), "{:?}, {:?}", guard.loss(), other.loss());
    assert!(there.try_acquire(Mode::Write).await.is_none());
    assert!(there.lock(fixture.group(), "other").write().now().await.unwrap().is_none());
    assert_eq!(guard.unlock().await.unwrap(), Unlocked::Released);
    assert_eq!(other.unlock().await.unwrap(), Unlocked::Released);
    drop(there.write().await);
}

/// A lock that was taken in a runtime that has ended is held on, and given back from a thread without any.
pub async fn a_guard_outlives_all_runtimes_of_its_client(fixture: Fixture) {
    let there = fixture.client().await;
    let elsewhere = Elsewhere::new();
    let inside = fixture.clone();
    let here = elsewhere.run(async move { inside.short_lived().await }).await;
    let used = here.clone();
    let guard = elsewhere.run(async move { used.write().await }).await;
    elsewhere.end().await;
    fixture.leases(3.0).await;
    assert!(guard.is_valid(), "{:?}", guard.loss());
    assert!(there.try_acquire(Mode::Write).await.is_none());
    let waiting = there.queue_up(Mode::Write).await;
    std::thread::spawn(move || drop(guard)).join().expect("no panic");
    within(at_once(&fixture), "it is given back", waiting.visit()).await;
}

/// The threads of a runtime, of which work that never yields blocks one.
#[derive(Clone, Copy, Debug)]
enum Threads {
    /// Another one is idle: as a rule the one that is blocked has driven timers and connections.
    OneOfTwo,
    All,
    /// That of the caller, which drives the runtime by itself.
    Callers,
}

impl Threads {
    /// Returns those that count for an engine.
    fn of(fixture: &Fixture) -> &'static [Self] {
        // The clock of a runtime of one thread may be paused, so what keeps locks in memory does not leave it.
        let all = &[Self::OneOfTwo, Self::All, Self::Callers];
        if fixture.harness().name() == "memory" { &all[..2] } else { all }
    }

    /// Does the work of a holder on a thread of such a runtime.
    async fn run<F>(self, work: F) -> F::Output
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let work = move || match self {
            Self::Callers => {
                Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(work)
            }
            Self::OneOfTwo | Self::All => {
                let threads = if matches!(self, Self::All) { 1 } else { 2 };
                let runtime = Builder::new_multi_thread().worker_threads(threads).enable_all().build();
                let runtime = runtime.expect("a runtime can be built");
                runtime.block_on(async { tokio::spawn(work).await.expect("no panic") })
            }
        };
        tokio::task::spawn_blocking(work).await.expect("no panic")
    }
}

/// A holder does work that blocks its thread for several leases: it keeps its lock. Only real time shows that.
pub async fn a_holder_whose_thread_is_blocked_keeps_its_lock(fixture: Fixture) {
    for threads in Threads::of(&fixture) {
        let there = fixture.client().await;
        // A busy machine takes a part of the shortest lease to notice, connect and renew.
        let lease = fixture.lease() * 2;
        let (inside, blocked_for) = (fixture.clone(), lease * 5 / 2);
        let (waits, is_held) = tokio::sync::oneshot::channel();
        let holder = threads.run(async move {
            let client = inside.client_with(Options::default().with_lease(lease)).await;
            let guard = client.write().await;
            waits.send(()).expect("the case waits");
            std::thread::sleep(blocked_for);
            (guard.loss(), guard.unlock().await)
        });
        let looks = async {
            is_held.await.expect("it holds the lock");
            assert!(there.try_acquire(Mode::Write).await.is_none());
        };
        let ((loss, unlocked), ()) = tokio::join!(holder, looks);
        assert_eq!(loss, None, "{threads:?}");
        assert_eq!(unlocked.expect("an answer"), Unlocked::Released, "{threads:?}");
        drop(there.write().await);
    }
}

/// A client is used first in a runtime that is not driven any more: what is held stays held, and the others go on.
pub async fn a_runtime_that_is_not_driven_any_more_costs_the_others_nothing(fixture: Fixture) {
    if fixture.harness().name() == "memory" {
        return;
    }
    let there = fixture.client().await;
    let inside = fixture.clone();
    let first = move || {
        let idle = Builder::new_current_thread().enable_all().build().expect("a runtime can be built");
        let (client, guard, dropped) = idle.block_on(async move {
            let client = inside.short_lived().await;
            let guard = client.write().await;
            let dropped = client.lock(inside.group(), "dropped").write().await.expect("it is free");
            (client, guard, dropped)
        });
        // Given back by work of that runtime.
        let inside = idle.enter();
        drop(dropped);
        drop(inside);
        (idle, client, guard)
    };
    let (idle, client, guard) = tokio::task::spawn_blocking(first).await.expect("no panic");
    let other = client.lock(fixture.group(), "other");
    drop(within(fixture.soon(), "a lock of another name", other.write()).await.expect("it is free"));
    let dropped = there.lock(fixture.group(), "dropped");
    drop(within(fixture.lapse(), "what was given back there", dropped.write()).await.expect("it is free"));
    fixture.leases(3.0).await;
    assert!(guard.is_valid(), "{:?}", guard.loss());
    assert!(there.try_acquire(Mode::Write).await.is_none());
    assert_eq!(
        within(fixture.soon(), "an answer", guard.unlock()).await.expect("an answer"),
        Unlocked::Released
    );
    tokio::task::spawn_blocking(move || drop(idle)).await.expect("no panic");
}

/// A waiter is granted the lock in a runtime that is not driven any more: the lock goes to the others, and the waiter gets it after them.
pub async fn a_lock_that_goes_to_a_waiter_which_does_not_run_goes_on_to_the_others(fixture: Fixture) {
    if fixture.harness().name() == "memory" {
        return;
    }
    let there = fixture.client().await;
    let held = there.write().await;
    let inside = fixture.clone();
    let first = move || {
        let idle = Builder::new_current_thread().enable_all().build().expect("a runtime can be built");
        let client = idle.block_on(inside.short_lived());
        let (waiting, look) = (client.clone(), inside.clone());
        let waiter = idle.spawn(async move { waiting.write().await });
        let queued = || async { !client.look().await.queue.is_empty() };
        idle.block_on(eventually(look.soon(), "it waits", queued));
        (idle, waiter, client)
    };
    let (idle, waiter, client) = tokio::task::spawn_blocking(first).await.expect("no panic");
    drop(held);
    for lock in [&client.lock, &there.lock] {
        let guard = within(fixture.lapse() * 3, "it goes to the others", lock.write()).await;
        drop(guard.expect("it is granted"));
    }
    let last = move || {
        let guard = idle.block_on(waiter).expect("no panic");
        let is_valid = guard.is_valid();
        drop((guard, idle));
        is_valid
    };
    assert!(tokio::task::spawn_blocking(last).await.expect("no panic"), "it acquires anew");
}

/// Waiters in a runtime that ends leave the queue of the store.
pub async fn waiters_of_a_runtime_that_ended_leave_the_queue(fixture: Fixture) {
    for used_elsewhere_too in [false, true] {
        let there = fixture.client().await;
        let elsewhere = Elsewhere::new();
        let here = client_from(&elsewhere, &fixture).await;
        if used_elsewhere_too {
            drop(here.lock(fixture.group(), "other").write().await.unwrap());
        }
        let held = there.write().await;
        for number in 0..20 {
            waits_in(&elsewhere, &here, if number % 3 == 0 { Mode::Read } else { Mode::Write }).await;
        }
        let queued = || async { !there.look().await.queue.is_empty() };
        eventually(fixture.soon(), "they are in the queue", queued).await;
        elsewhere.end().await;
        let gone = || async { there.look().await.queue.is_empty() };
        eventually(at_once(&fixture), "they are gone", gone).await;
        drop(held);
        drop(within(at_once(&fixture), "no waiter is before it", there.lock.write()).await.unwrap());
        eventually(at_once(&fixture), "the client forgets them", || async { here.keys_in_use() == 0 }).await;
    }
}

/// A runtime ends while its tasks acquire, change and give back: nothing of them stays, and others go on.
pub async fn a_runtime_ends_in_the_middle_of_everything(fixture: Fixture) {
    let there = fixture.client().await;
    let here = fixture.client().await;
    for round in 0..6 {
        let elsewhere = Elsewhere::new();
        let turns = Arc::new(AtomicUsize::new(0));
        for number in 0..6 {
            let lock = here.lock(fixture.group(), format!("name {}", number % 2));
            let turns = Arc::clone(&turns);
            elsewhere.start(async move {
                loop {
                    let guard = if number < 4 { lock.write().await } else { lock.read().await };
                    let Ok(guard) = guard else { return };
                    turns.fetch_add(1, Ordering::Relaxed);
                    drop(guard.downgrade().await);
                }
            });
        }
        let busy = || async { turns.load(Ordering::Relaxed) > 4 + round };
        eventually(fixture.soon(), "they work", busy).await;
        elsewhere.end().await;
        for name in ["name 0", "name 1"] {
            for client in [&there, &here] {
                let lock = client.lock(fixture.group(), name);
                drop(within(at_once(&fixture), "it is free", lock.write()).await.unwrap());
            }
        }
    }
}
