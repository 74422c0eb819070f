//! Virtual time and tasks: everything happens on one thread, in an order that the seed decides.
//!
//! An *actor* is one run of a client process. It can be paused (its tasks are not run, but time passes for it) and killed (all
//! its futures are dropped, wherever they are). It has two threads: the runtime of the program, which can stand still by itself, and
//! the client's own.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use ylock_core::environment::BoxFuture;

use crate::trace::Trace;

/// The world of one run; see the [module](self).
pub struct World {
    inner: Mutex<Inner>,
    ready: Ready,
    trace: Mutex<Trace>,
}

/// One run of a client process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Actor(usize);

/// The thread that runs a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thread {
    /// The runtime of the program.
    Runtime,
    /// The client's own.
    Own,
}

/// The owner of a task, which decides what becomes of it when its runtime is abandoned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The program's: it waits until the runtime goes on.
    Program,
    /// The client's: it goes on elsewhere if it has not begun, and is dropped otherwise.
    Work,
    /// That of a connection that was made in the runtime: it is dropped.
    Connection,
}

type TaskId = u64;
type Ready = Arc<Mutex<VecDeque<TaskId>>>;
type Deed = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Inner {
    now: u64,
    number: u64,
    /// How often a task was run or something happened.
    steps: u64,
    has_ended: bool,
    events: BinaryHeap<Reverse<Event>>,
    tasks: BTreeMap<TaskId, Task>,
    actors: Vec<ActorState>,
    /// The thread that runs at this moment.
    current: Option<Thread>,
}

struct Task {
    actor: Actor,
    thread: Thread,
    kind: Kind,
    has_begun: bool,
    /// Nothing while it is being run.
    future: Option<BoxFuture>,
}

#[derive(Default)]
struct ActorState {
    is_dead: bool,
    paused_until: u64,
    /// Until when its runtime stands still.
    stands_until: u64,
    /// The tasks that became ready during the pause.
    deferred: Vec<TaskId>,
}

struct Event {
    at: u64,
    /// The order of events at the same time.
    number: u64,
    deed: Deed,
}

struct TaskWaker {
    id: TaskId,
    ready: Ready,
}

impl World {
    /// The steps after which nothing happens any more: a client that asks again and again without a pause would otherwise keep the run at
    /// one moment for ever. Runs that are well take less than a tenth.
    pub const MOST_STEPS: u64 = 1_000_000;
    /// The time after which a client's own thread abandons a runtime that stands still.
    const PATIENCE: Duration = Duration::from_millis(1_250);

    /// Creates an empty world. `lines`: keep a trace that can be read, not only its hash.
    pub fn new(lines: bool) -> Arc<Self> {
        Arc::new(Self {
            inner: Mutex::default(),
            ready: Ready::default(),
            trace: Mutex::new(Trace::new(lines)),
        })
    }

    /// Returns the nanoseconds since the beginning.
    pub fn now(&self) -> u64 {
        self.inner.lock().now
    }

    /// Returns how often a task was run or something happened; see [`World::MOST_STEPS`].
    pub fn steps(&self) -> u64 {
        self.inner.lock().steps
    }

    /// Creates an actor, which can be paused and killed.
    pub fn new_actor(&self) -> Actor {
        let mut inner = self.inner.lock();
        inner.actors.push(ActorState::default());
        Actor(inner.actors.len() - 1)
    }

    /// Does something later, unless the world has ended.
    pub fn after(&self, delay: Duration, deed: impl FnOnce() + Send + 'static) {
        let mut inner = self.inner.lock();
        if inner.has_ended {
            drop(inner);
            drop(deed);
            return;
        }
        let at = inner.now.saturating_add(u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX));
        inner.number += 1;
        let number = inner.number;
        inner.events.push(Reverse(Event { at, number, deed: Box::new(deed) }));
    }

    /// Starts a task of an actor's program; drops it if the actor is dead.
    pub fn spawn(&self, actor: Actor, future: BoxFuture) {
        self.spawn_as((actor, Thread::Runtime), Kind::Program, future, false);
    }

    /// Starts a task on a thread of an actor; drops it if the actor is dead.
    pub fn spawn_as(&self, (actor, thread): (Actor, Thread), kind: Kind, future: BoxFuture, has_begun: bool) {
        let mut inner = self.inner.lock();
        if inner.actors[actor.0].is_dead {
            drop(inner);
            drop(future);
            return;
        }
        inner.number += 1;
        let id = inner.number;
        inner.tasks.insert(id, Task { actor, thread, kind, has_begun, future: Some(future) });
        self.ready.lock().push_back(id);
    }

    /// Runs nothing of this actor for so long.
    pub fn pause(self: &Arc<Self>, actor: Actor, time: Duration) {
        let until = self.now() + u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        {
            let state = &mut self.inner.lock().actors[actor.0];
            state.paused_until = state.paused_until.max(until);
        }
        let world = Arc::clone(self);
        self.after(time, move || world.resume(actor));
    }

    /// Runs nothing in the runtime of this actor for so long: its program blocks the thread, or does not drive it.
    pub fn stand_still(self: &Arc<Self>, actor: Actor, time: Duration) {
        let until = self.now() + u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        {
            let state = &mut self.inner.lock().actors[actor.0];
            state.stands_until = state.stands_until.max(until);
        }
        self.look_at(actor);
        let world = Arc::clone(self);
        self.after(time, move || world.resume(actor));
    }

    /// Abandons the runtime of an actor if it still stands still after some time, again and again.
    fn look_at(self: &Arc<Self>, actor: Actor) {
        let world = Arc::clone(self);
        self.after(Self::PATIENCE, move || {
            if world.stands_still(actor) {
                world.abandon(actor);
                world.look_at(actor);
            }
        });
    }

    /// Treats the runtime of an actor as if it had ended: what it was to do for the client goes on on the client's own thread if it had
    /// not begun, and is dropped otherwise.
    pub fn abandon(&self, actor: Actor) {
        let mut inner = self.inner.lock();
        let is_of_client =
            |task: &Task| (task.actor, task.thread) == (actor, Thread::Runtime) && task.kind != Kind::Program;
        let ids: Vec<_> =
            inner.tasks.iter().filter(|(_, task)| is_of_client(task)).map(|(&id, _)| id).collect();
        let mut dropped = Vec::new();
        for id in ids {
            match inner.tasks.get_mut(&id) {
                Some(task) if task.kind == Kind::Work && !task.has_begun => task.thread = Thread::Own,
                _ => dropped.extend(inner.tasks.remove(&id)),
            }
        }
        // Those that still may not run are deferred again.
        self.ready.lock().extend(std::mem::take(&mut inner.actors[actor.0].deferred));
        let before = inner.current.replace(Thread::Own);
        drop(inner);
        // Their drops may start tasks.
        drop(dropped);
        self.inner.lock().current = before;
    }

    fn resume(&self, actor: Actor) {
        let mut inner = self.inner.lock();
        let now = inner.now;
        let state = &mut inner.actors[actor.0];
        if state.paused_until <= now {
            self.ready.lock().extend(std::mem::take(&mut state.deferred));
        }
    }

    /// Kills an actor, as `kill -9` does.
    pub fn kill(&self, actor: Actor) {
        let mut inner = self.inner.lock();
        inner.actors[actor.0].is_dead = true;
        let dead: Vec<_> =
            inner.tasks.iter().filter(|(_, task)| task.actor == actor).map(|(&id, _)| id).collect();
        let futures: Vec<_> = dead.iter().filter_map(|id| inner.tasks.remove(id)).collect();
        drop(inner);
        // Their drops may look at the world.
        drop(futures);
    }

    /// Ends the world: nothing happens any more.
    pub fn end(&self) {
        let (events, tasks) = {
            let mut inner = self.inner.lock();
            // What is dropped here must not start anything again.
            inner.actors.iter_mut().for_each(|actor| actor.is_dead = true);
            inner.has_ended = true;
            (std::mem::take(&mut inner.events), std::mem::take(&mut inner.tasks))
        };
        // Their drops may look at the world.
        drop((events, tasks));
    }

    /// Returns whether this actor has not been killed.
    pub fn is_alive(&self, actor: Actor) -> bool {
        !self.inner.lock().actors[actor.0].is_dead
    }

    /// Returns whether the program of this actor is not being run at present.
    pub fn is_paused(&self, actor: Actor) -> bool {
        let inner = self.inner.lock();
        inner.actors[actor.0].defers(Thread::Runtime, inner.now)
    }

    /// Returns whether the runtime of this actor stands still.
    pub fn stands_still(&self, actor: Actor) -> bool {
        let inner = self.inner.lock();
        inner.actors[actor.0].stands_until > inner.now
    }

    /// Returns the thread that runs at this moment; the runtime of the program where none does.
    pub fn current(&self) -> Thread {
        self.inner.lock().current.unwrap_or(Thread::Runtime)
    }

    /// Lets things happen until `done`, until this time, or until nothing can happen any more. Returns whether it is done.
    pub fn run(&self, until: u64, done: impl Fn() -> bool) -> bool {
        loop {
            while let Some(id) = { self.ready.lock().pop_front() }
                && self.steps() < Self::MOST_STEPS
            {
                self.poll(id);
            }
            if done() {
                return true;
            }
            let mut inner = self.inner.lock();
            inner.steps += 1;
            match inner.events.peek() {
                Some(Reverse(event)) if event.at <= until && inner.steps < Self::MOST_STEPS => {}
                _ => {
                    inner.now = inner.now.max(until);
                    return false;
                }
            }
            let Some(Reverse(event)) = inner.events.pop() else { return false };
            inner.now = event.at;
            drop(inner);
            (event.deed)();
        }
    }

    fn poll(&self, id: TaskId) {
        let mut future = {
            let mut inner = self.inner.lock();
            inner.steps += 1;
            let Some(task) = inner.tasks.get_mut(&id) else { return };
            let (actor, thread) = (task.actor.0, task.thread);
            // Not there: it was woken while it ran, by itself; it is in the queue again.
            let Some(future) = task.future.take() else { return };
            let defers = inner.actors[actor].defers(thread, inner.now);
            if defers {
                inner.actors[actor].deferred.push(id);
            }
            if let Some(task) = inner.tasks.get_mut(&id) {
                if defers {
                    task.future = Some(future);
                    return;
                }
                task.has_begun = true;
            }
            inner.current = Some(thread);
            future
        };
        let waker = Waker::from(Arc::new(TaskWaker { id, ready: Arc::clone(&self.ready) }));
        let is_over = future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready();
        let mut inner = self.inner.lock();
        match inner.tasks.get_mut(&id) {
            Some(task) if !is_over => task.future = Some(future),
            _ => {
                inner.tasks.remove(&id);
                drop(inner);
                drop(future);
                inner = self.inner.lock();
            }
        }
        inner.current = None;
    }

    /// Notes what happened: part of the trace's hash, and of the trace itself if that is kept.
    pub fn note(&self, line: impl FnOnce() -> String) {
        let now = self.now();
        self.trace.lock().note(now, &line());
    }

    /// Returns the hash of everything that was noted.
    pub fn hash(&self) -> u64 {
        self.trace.lock().hash()
    }

    /// Returns what was noted, if it was kept.
    pub fn lines(&self) -> Vec<String> {
        self.trace.lock().lines().to_vec()
    }
}

/// Returns a future that is over after `time` of the world.
pub fn sleep(world: &Arc<World>, time: Duration) -> BoxFuture {
    Box::pin(Sleep { world: Arc::clone(world), time: Some(time), state: Arc::default() })
}

#[derive(Default)]
struct SleepState {
    is_over: bool,
    waker: Option<Waker>,
}

struct Sleep {
    world: Arc<World>,
    /// Taken by the first poll.
    time: Option<Duration>,
    state: Arc<Mutex<SleepState>>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if let Some(time) = self.time.take() {
            let state = Arc::clone(&self.state);
            self.world.after(time, move || {
                let mut state = state.lock();
                state.is_over = true;
                if let Some(waker) = state.waker.take() {
                    waker.wake();
                }
            });
        }
        let mut state = self.state.lock();
        if state.is_over {
            return Poll::Ready(());
        }
        state.waker = Some(context.waker().clone());
        Poll::Pending
    }
}

impl ActorState {
    /// Returns whether this thread runs nothing now.
    fn defers(&self, thread: Thread, now: u64) -> bool {
        self.paused_until > now || (thread == Thread::Runtime && self.stands_until > now)
    }
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        let mut ready = self.ready.lock();
        if !ready.contains(&self.id) {
            ready.push_back(self.id);
        }
    }
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.number) == (other.at, other.number)
    }
}

impl Eq for Event {}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Event {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("World")
    }
}
