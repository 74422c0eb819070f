//! The clocks of a client process.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use ylock_core::environment::{Answer, BoxFuture, Environment, Moment, RuntimeId};

use crate::chance::Chance;
use crate::world::{Actor, Kind, Thread, World, sleep};

/// The wall clock at the beginning, in microseconds since 1970.
pub(crate) const START: i64 = 1_700_000_000_000_000;

/// One client process's own clocks: a steady one that may run too fast or too slow, and a wall clock that may step.
#[derive(Debug)]
pub struct Clocks {
    world: Arc<World>,
    actor: Actor,
    /// The rate of the steady clock.
    rate: f64,
    /// The error of the wall clock, in microseconds.
    wall_offset: AtomicI64,
    /// The time for which the steady clock stood still, in nanoseconds: a machine that was suspended by its host.
    stood_still: AtomicU64,
    /// Until when it stands still, by the world's time.
    stands_until: AtomicU64,
    chance: Mutex<Chance>,
}

impl Clocks {
    /// Creates the clocks of an actor.
    pub fn new(world: &Arc<World>, actor: Actor, rate: f64, wall_offset: i64, chance: Chance) -> Arc<Self> {
        let world = Arc::clone(world);
        let (wall_offset, chance) = (AtomicI64::new(wall_offset), Mutex::new(chance));
        let [stood_still, stands_until] = [0, 0].map(AtomicU64::new);
        Arc::new(Self { world, actor, rate, wall_offset, stood_still, stands_until, chance })
    }

    /// Steps the wall clock.
    pub fn step(&self, micros: i64) {
        self.wall_offset.fetch_add(micros, Ordering::Relaxed);
    }

    /// Makes the steady clock miss this time, from now on, in which its owner does not run. What it misses already counts once: a steady
    /// clock does not go back.
    pub fn stand_still(&self, time: Duration) {
        let now = self.world.now();
        let until = now.saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        let before = self.stands_until.fetch_max(until, Ordering::Relaxed).max(now);
        self.stood_still.fetch_add(until.saturating_sub(before), Ordering::Relaxed);
    }

    /// Returns whether the steady clock ever stood still: then nothing is promised about what its owner believes.
    pub fn stood_still(&self) -> bool {
        self.stood_still.load(Ordering::Relaxed) > 0
    }

    /// Starts a task of the program.
    pub fn spawn_of_program(&self, future: BoxFuture) {
        self.world.spawn(self.actor, future);
    }

    fn spawn_here(&self, kind: Kind, future: BoxFuture) {
        self.world.spawn_as((self.actor, self.world.current()), kind, future, false);
    }

    /// Returns the actor whose clocks these are.
    pub fn actor(&self) -> Actor {
        self.actor
    }
}

impl Environment for Clocks {
    fn now(&self) -> Moment {
        let running = self.world.now().saturating_sub(self.stood_still.load(Ordering::Relaxed));
        // Not from zero: a default moment must not be mistaken for one of this clock.
        Moment::from_nanos(1_000_000_000 + (running as f64 * self.rate) as u64)
    }

    fn wall_micros(&self) -> i64 {
        let passed = i64::try_from(self.world.now() / 1_000).unwrap_or(i64::MAX);
        START + passed + self.wall_offset.load(Ordering::Relaxed)
    }

    fn random(&self) -> u64 {
        self.chance.lock().number()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture {
        sleep(&self.world, duration.div_f64(self.rate))
    }

    fn spawn(&self, future: BoxFuture) {
        self.spawn_here(Kind::Work, future);
    }

    fn spawn_begun(&self, future: BoxFuture, _runtime: RuntimeId) {
        // Only callers poll before they spawn.
        self.world.spawn_as((self.actor, Thread::Runtime), Kind::Work, future, true);
    }

    fn spawn_beside(&self, future: BoxFuture) {
        self.spawn_here(Kind::Connection, future);
    }

    fn spawn_for_all(&self, future: BoxFuture) {
        self.world.spawn_as((self.actor, Thread::Own), Kind::Work, future, false);
    }

    fn abandon_standing(&self, _: Option<RuntimeId>, patience: Duration) -> Answer<bool> {
        let (world, actor) = (Arc::clone(&self.world), self.actor);
        let [first, second] = [self.sleep(patience / 2), self.sleep(patience / 2)];
        Box::pin(async move {
            if world.current() == Thread::Runtime || !world.stands_still(actor) {
                return false;
            }
            // In two steps: after a pause of the whole process the first one is over at once.
            first.await;
            second.await;
            let stands = world.stands_still(actor);
            if stands {
                world.abandon(actor);
            }
            stands
        })
    }

    fn enter(&self) -> bool {
        self.world.is_alive(self.actor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_clock_does_not_go_back() {
        let world = World::new(false);
        let clocks = Clocks::new(&world, world.new_actor(), 1.0, 0, Chance::new(1));
        let at = |seconds: u64| world.run(seconds * 1_000_000_000, || false);
        at(1);
        let before = clocks.now();
        clocks.stand_still(Duration::from_secs(10));
        at(3);
        clocks.stand_still(Duration::from_secs(5));
        at(4);
        clocks.stand_still(Duration::from_secs(9));
        at(13);
        assert_eq!(clocks.now(), before, "ten seconds, and two more");
        at(14);
        assert_eq!(clocks.now(), before.plus(Duration::from_secs(1)));
    }

    #[test]
    fn a_runtime_that_stands_still_keeps_its_programs_tasks_and_no_work_of_the_client() {
        let world = World::new(false);
        let actor = world.new_actor();
        let clocks = Clocks::new(&world, actor, 1.0, 0, Chance::new(1));
        let done = Arc::new(Mutex::new(Vec::new()));
        let says = |what: &'static str| -> BoxFuture {
            let (clocks, done) = (Arc::clone(&clocks), Arc::clone(&done));
            Box::pin(async move {
                clocks.sleep(Duration::from_secs(1)).await;
                done.lock().push(what);
            })
        };
        clocks.spawn_of_program(says("program"));
        clocks.spawn(says("begun"));
        clocks.spawn_beside(says("connection"));
        clocks.spawn_for_all(says("own"));
        world.run(500_000_000, || false);
        world.stand_still(actor, Duration::from_secs(60));
        clocks.spawn(says("work"));
        assert!(world.is_paused(actor));
        world.run(30_000_000_000, || false);
        assert_eq!(*done.lock(), ["own", "work"]);
        world.run(90_000_000_000, || false);
        assert_eq!(*done.lock(), ["own", "work", "program"]);
    }
}
