//! A driver that the caller polls which has made it necessary: no task is spawned, and the store's answer wakes the caller itself.
//!
//! A caller that has begun may stop polling, or leave. So the driver lies in a slot that the entry knows: the first change of the entry that
//! needs the driver (another caller that arrives, a wait that ends, a client that is closed) makes a task of it. And so does [`Watch`], after
//! a few milliseconds: what takes longer than a trip to the store is no caller's. A caller that does not poll might otherwise keep what
//! others need: a place on a connection, its turn at a lock.
//!
//! The store's answer wakes the caller by way of the slot, whose waker calls that of the caller
//! behind a [`Shield`]: the task that brings the answer is that of a connection, which other keys
//! use too.

use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};
use tokio::task::coop::unconstrained;

use crate::environment::{BackgroundTask, BoxFuture, Environment, RuntimeId};
use crate::foreign::Shield;

/// The slot of one driver, which the entry and the caller share.
#[derive(Default)]
pub(super) struct DriverSlot {
    driver: Mutex<Driver>,
    /// Before the waker of the caller. It waits for nothing but the driver, so it must be woken
    /// when that goes.
    caller: Shield,
}

#[derive(Default)]
enum Driver {
    /// The caller makes it, or polls it; or it is done.
    #[default]
    Elsewhere,
    /// It is a task, or becomes one when the caller puts it back.
    Wanted,
    /// It waits for the store, or was not polled yet.
    Lies(Lying),
}

struct Lying {
    driver: BoxFuture,
    /// The runtime in which the caller has polled it last: in another one, what the driver waits
    /// for may never come.
    polled: Option<RuntimeId>,
}

impl DriverSlot {
    /// Makes a task of the driver.
    pub(super) fn spawn(&self, environment: &dyn Environment) {
        let before = std::mem::replace(&mut *self.driver.lock(), Driver::Wanted);
        if let Driver::Lies(lying) = before {
            self.make_task(lying, environment);
        }
    }

    /// Puts the driver back. If it is wanted as a task, it becomes one.
    fn put(&self, lying: Lying, environment: &dyn Environment) {
        let mut driver = self.driver.lock();
        if !matches!(*driver, Driver::Wanted) {
            *driver = Driver::Lies(lying);
            return;
        }
        drop(driver);
        self.make_task(lying, environment);
    }

    fn take(&self) -> Option<Lying> {
        let mut driver = self.driver.lock();
        match std::mem::take(&mut *driver) {
            Driver::Lies(lying) => Some(lying),
            other => {
                *driver = other;
                None
            }
        }
    }

    fn make_task(&self, Lying { driver, polled }: Lying, environment: &dyn Environment) {
        match polled {
            None => environment.spawn(driver),
            Some(runtime) => {
                // Dropped where it cannot go on, which starts another one.
                environment.spawn_begun(driver, runtime);
                self.caller.wake_caller();
            }
        }
    }
}

impl Wake for DriverSlot {
    fn wake(self: Arc<Self>) {
        self.caller.wake_caller();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.caller.wake_caller();
    }
}

impl fmt::Debug for DriverSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DriverSlot").finish_non_exhaustive()
    }
}

/// The caller's side of a slot. Dropping it makes a task of the driver.
#[derive(Debug)]
pub(super) struct CallerDrives {
    slot: Arc<DriverSlot>,
    environment: Arc<dyn Environment>,
}

impl CallerDrives {
    /// Puts a driver into its slot.
    pub(super) fn new(slot: Arc<DriverSlot>, driver: BoxFuture, environment: Arc<dyn Environment>) -> Self {
        slot.put(Lying { driver, polled: None }, &*environment);
        Self { slot, environment }
    }

    /// Goes on with the driver, if it is still the caller's. Returns whether it is no more: it is done, or a task.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Some(Lying { mut driver, polled }) = self.slot.take() else { return Poll::Ready(()) };
        let runtime = RuntimeId::current();
        let may_go_on = polled.is_none_or(|polled| polled == runtime);
        // Where no runtime lives there are no timers and no connections.
        if !may_go_on || !self.environment.runs_here() {
            match polled {
                None => self.environment.spawn(driver),
                // What it waits for was another runtime's. Its drop starts another one.
                Some(_) => drop(driver),
            }
            return Poll::Ready(());
        }
        // With a budget of its own: the caller may have used up that of its task. What is not ready would then be taken for what only the
        // store can bring.
        self.slot.caller.stands_before(context.waker());
        let waker = Waker::from(Arc::clone(&self.slot));
        if pin!(unconstrained(driver.as_mut())).poll(&mut Context::from_waker(&waker)).is_ready() {
            return Poll::Ready(());
        }
        self.slot.put(Lying { driver, polled: Some(runtime) }, &*self.environment);
        Poll::Pending
    }
}

impl Drop for CallerDrives {
    fn drop(&mut self) {
        self.slot.spawn(&*self.environment);
    }
}

/// Looks after the drivers that callers have begun to poll lately.
#[derive(Debug, Default)]
pub(super) struct Watch {
    begun: Mutex<Begun>,
    /// Rung when there is a driver again to look after, and when the client is gone.
    bell: Arc<Notify>,
    task: BackgroundTask,
}

/// Not the task's own: its runtime may end, and another one goes on with them.
#[derive(Debug, Default)]
struct Begun {
    /// The slots since the task has looked last.
    new: Vec<Arc<DriverSlot>>,
    /// The slots that it has seen once.
    seen: Vec<Arc<DriverSlot>>,
    /// The number of new ones at which those that are done are left out: the task may be in a runtime that is not driven.
    most: usize,
}

/// A caller drives for as long as this at least, and for twice as long at most, if the runtime of the watch's task is driven.
const SHORT: Duration = Duration::from_millis(10);
/// So many new slots are not worth a look for those that are done.
const FEW: usize = 1_000;

impl Begun {
    /// Adds a slot. Returns whether it is the only new one.
    fn add(&mut self, slot: &Arc<DriverSlot>) -> bool {
        if self.new.len() >= self.most.max(FEW) {
            // Neither the entry nor a caller has a slot whose driver is done.
            self.new.retain(|slot| Arc::strong_count(slot) > 1);
            self.most = self.new.len() * 2;
        }
        self.new.push(Arc::clone(slot));
        self.new.len() == 1
    }

    /// Takes the slots that were seen before, and sees the others. Returns also whether there are none of either.
    fn look(&mut self) -> (Vec<Arc<DriverSlot>>, bool) {
        let new = std::mem::take(&mut self.new);
        let is_idle = new.is_empty();
        (std::mem::replace(&mut self.seen, new), is_idle)
    }
}

impl Watch {
    /// Watches one more driver.
    pub(super) fn begin(self: &Arc<Self>, slot: &Arc<DriverSlot>, environment: &Arc<dyn Environment>) {
        if self.begun.lock().add(slot) {
            self.bell.notify_one();
        }
        if !self.task.is_running() {
            let (watch, of_task) = (Arc::downgrade(self), Arc::downgrade(environment));
            self.task
                .start(environment, move || Box::pin(make_tasks(Weak::clone(&watch), Weak::clone(&of_task))));
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // Only now: woken before, the task would find that the client is still there.
        self.bell.notify_one();
    }
}

/// Makes tasks of the drivers that callers have had for long enough, as long as there is a client.
async fn make_tasks(watch: Weak<Watch>, environment: Weak<dyn Environment>) {
    while let (Some(watch), Some(environment)) = (watch.upgrade(), environment.upgrade()) {
        let (seen, is_idle) = watch.begun.lock().look();
        seen.iter().for_each(|slot| slot.spawn(&*environment));
        let (bell, pause) = (Arc::clone(&watch.bell), environment.sleep(SHORT));
        // Neither is kept alive by the task that looks after them.
        drop((seen, watch, environment));
        if is_idle { bell.notified().await } else { pause.await }
    }
}

/// Waits for an answer, and drives meanwhile what brings it.
pub(super) async fn drive<T>(
    drives: &mut Option<CallerDrives>,
    answer: &mut oneshot::Receiver<T>,
) -> Result<T, oneshot::error::RecvError> {
    std::future::poll_fn(|context| {
        if let Some(driver) = drives {
            if driver.poll(context).is_pending() {
                // What the driver waits for wakes the caller; the answer, which comes out of it, need not do so once more.
                return match answer.try_recv() {
                    Ok(answer) => Poll::Ready(Ok(answer)),
                    Err(_) => Poll::Pending,
                };
            }
            *drives = None;
        }
        Pin::new(&mut *answer).poll(context)
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::SystemEnvironment;

    /// The task that looks after them does not run.
    #[tokio::test(start_paused = true)]
    async fn drivers_that_are_done_are_not_kept() {
        let (watch, environment) = (Arc::<Watch>::default(), SystemEnvironment::on_tokio_clock());
        let lies = Arc::default();
        watch.begin(&lies, &environment);
        for _ in 0..10 * FEW {
            watch.begin(&Arc::default(), &environment);
        }
        let begun = watch.begun.lock();
        assert!(begun.new.len() <= FEW && begun.new.iter().any(|slot| Arc::ptr_eq(slot, &lies)));
    }

    /// Another thread may want it before its caller has polled it, and a layer that panics drops it.
    #[tokio::test(start_paused = true)]
    async fn a_driver_that_was_not_polled_becomes_a_task() {
        let (sender, receiver) = oneshot::channel();
        let driver = Box::pin(async move { sender.send(()).unwrap_or_default() });
        let drives = CallerDrives::new(Arc::default(), driver, SystemEnvironment::on_tokio_clock());
        drop(drives);
        tokio::time::timeout(Duration::from_secs(1), receiver).await.expect("in time").unwrap();
    }
}
