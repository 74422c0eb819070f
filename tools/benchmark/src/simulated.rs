//! Points on the simulated store: virtual time, nothing goes wrong, and a seed decides everything.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use anyhow::{Context, Result};
use parking_lot::Mutex;
use ylock_core::environment::Environment;
use ylock_engine_cassandra::algorithm::store::Store;
use ylock_engine_cassandra::{CassandraEngine, CassandraOptions};
use ylock_simulation::chance::Chance;
use ylock_simulation::clocks::Clocks;
use ylock_simulation::store::{Cluster, Connection, Weather};
use ylock_simulation::world::{Actor, World};

use crate::budget::Budget;
use crate::contender::{Contender, LEASE};
use crate::cores::{Computing, Cores};
use crate::counting::Counting;
use crate::figures::Quantiles;
use crate::matrix::Point;
use crate::point::{Party, play};
use crate::record::Record;

/// The number of messages of a request: to a coordinator, from it to replicas, and back both ways.
const MESSAGES: u32 = 4;
/// The part by which each message is faster or slower than its share: without it all would move in step for ever.
const JITTER: f64 = 0.1;
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);
/// A time that no point takes.
const FOR_EVER: u64 = u64::MAX;

/// Runs one point.
pub(crate) fn run(
    point: Point,
    round_trip: Duration,
    budget: Budget,
    cores: Option<&Arc<Cores>>,
) -> Result<Record> {
    let mut scene = Scene::new(point.seed(), round_trip);
    scene.cores = cores.cloned();
    let requests = Arc::new(AtomicU64::new(0));
    let options = CassandraOptions::new("simulated")
        .with_host("simulated", 9042)
        .with_lease(LEASE)
        .with_request_timeout(REQUEST_TIMEOUT)
        .with_protocol(point.lock.protocol());
    let contenders =
        (0..point.contenders).map(|number| scene.contender(number, &options, &requests)).collect();
    let (conductor, environment) = scene.client();
    let party = Party { contenders, environment, requests, group: "simulated".to_owned() };
    scene.finish(conductor, play(party, point, budget))?
}

/// Measures the time that one request takes when nothing else happens.
pub(crate) fn round_trip(round_trip: Duration, rounds: u32) -> Result<Quantiles> {
    let mut scene = Scene::new(1, round_trip);
    let (actor, clocks) = scene.client();
    let store = Connection::new(&scene.world, &scene.cluster, &clocks, REQUEST_TIMEOUT);
    scene.finish(actor, async move { crate::measure::round_trip(&store, &*clocks, rounds).await })?
}

struct Scene {
    world: Arc<World>,
    cluster: Arc<Cluster>,
    chance: Chance,
    actors: Vec<Actor>,
    /// Those that all share; without them computing takes no time.
    cores: Option<Arc<Cores>>,
}

impl Scene {
    fn new(seed: u64, round_trip: Duration) -> Self {
        let mut chance = Chance::new(seed);
        let world = World::new(false);
        let message = round_trip / MESSAGES;
        let weather = Weather {
            latency: (message.mul_f64(1.0 - JITTER), message.mul_f64(1.0 + JITTER)),
            slow: (0.0, Duration::ZERO),
            loss: 0.0,
            duplicates: 0.0,
            hints: true,
            read_repair: true,
        };
        let cluster = Cluster::new(&world, weather, &[0; 3], chance.fork());
        Self { world, cluster, chance, actors: Vec::new(), cores: None }
    }

    /// Creates a process with clocks that are right.
    fn client(&mut self) -> (Actor, Arc<Clocks>) {
        let actor = self.world.new_actor();
        self.actors.push(actor);
        (actor, Clocks::new(&self.world, actor, 1.0, 0, self.chance.fork()))
    }

    fn contender(&mut self, number: u32, options: &CassandraOptions, requests: &Arc<AtomicU64>) -> Contender {
        let (_, clocks) = self.client();
        let mut store: Arc<dyn Store> =
            Arc::new(Connection::new(&self.world, &self.cluster, &clocks, REQUEST_TIMEOUT));
        let environment: Arc<dyn Environment> = clocks;
        if let Some(cores) = &self.cores {
            let (environment, cores) = (Arc::clone(&environment), Arc::clone(cores));
            store = Arc::new(Computing { store, environment, cores });
        }
        let store = Arc::new(Counting { store, requests: Arc::clone(requests) });
        let engine = Arc::new(CassandraEngine::over(store, Arc::clone(&environment), options));
        Contender { number, engine, environment }
    }

    /// Runs the world until the work has its result.
    fn finish<T: Send + 'static>(
        self,
        actor: Actor,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T> {
        let result = Arc::new(Mutex::new(None));
        let slot = Arc::clone(&result);
        let work = async move {
            let value = work.await;
            *slot.lock() = Some(value);
        };
        self.world.spawn(actor, Box::pin(work));
        let take = || result.lock().take();
        let is_there = || result.lock().is_some();
        self.world.run(FOR_EVER, is_there);
        let value = take();
        self.clear();
        value.context("nothing can happen any more, and the point is not over")
    }

    /// Ends all tasks and messages: they know the world that has them, and so it would never be freed.
    fn clear(self) {
        self.actors.iter().for_each(|&actor| self.world.kill(actor));
        self.world.run(FOR_EVER, || false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::{Call, Lock, Names, Place};

    const ROUND_TRIP: u64 = 2_000;

    fn tiny(names: Names, call: Call, lock: Lock) -> Record {
        let place = Place::Simulated { round_trip_micros: ROUND_TRIP };
        let point = Point { place, names, call, contenders: 3, hold_millis: 1, lock };
        run(point, Duration::from_micros(ROUND_TRIP), Budget::of(&point, true), None).unwrap()
    }

    #[test]
    fn the_same_point_is_the_same_twice() {
        for lock in Lock::OF_THE_THESIS {
            let record = tiny(Names::Hot, Call::GetLock, lock);
            assert_eq!(record, tiny(Names::Hot, Call::GetLock, lock));
            assert!(record.grants > 10, "{record:?}");
        }
    }

    #[test]
    fn everybody_gets_in_once_with_a_fresh_name() {
        for lock in Lock::OF_THE_THESIS {
            let record = tiny(Names::Fresh, Call::GetLock, lock);
            assert_eq!((record.got_in, record.grants), (3, u64::from(record.rounds) * 3), "{record:?}");
            assert_eq!((record.overlaps, record.lost_increments, record.errors), (0, 0, 0));
        }
    }

    #[test]
    fn somebody_gets_it_when_all_try() {
        let record = tiny(Names::Fresh, Call::TryGetLock, Lock::Queue);
        assert_eq!((record.rounds_without_grant, record.calls), (0, u64::from(record.rounds) * 3));
    }

    #[test]
    fn a_request_takes_the_round_trip() {
        let times = round_trip(Duration::from_micros(ROUND_TRIP), 100).unwrap();
        assert!((1.9..2.2).contains(&times.p50), "{times:?}");
    }
}
