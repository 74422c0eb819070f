//! What section 6 of the thesis says of its time service, and what replaces it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ylock_core::engine::{AcquisitionId, Engine, Request};
use ylock_core::environment::Environment;
use ylock_core::{ClientName, Key, Mode, Owner};
use ylock_engine_cassandra::algorithm::store::Store;
use ylock_engine_cassandra::clock::{GlobalTime, TimeCell};
use ylock_engine_cassandra::{CassandraEngine, CassandraOptions};
use ylock_simulation::chance::Chance;
use ylock_simulation::clocks::Clocks;
use ylock_simulation::store::{Cluster, Connection, Weather};
use ylock_simulation::world::{Actor, World};

const TEN_MINUTES: Duration = Duration::from_secs(600);
const LEASE: Duration = Duration::from_secs(5);

struct Fixture {
    world: Arc<World>,
    cluster: Arc<Cluster>,
}

/// A client process whose wall clock is ahead by so much.
struct Process {
    actor: Actor,
    clocks: Arc<Clocks>,
    connection: Arc<Connection>,
}

impl Fixture {
    fn new() -> Self {
        let world = World::new(false);
        let weather = Weather::calm((Duration::from_millis(1), Duration::from_millis(3)));
        let cluster = Cluster::new(&world, weather, &[0; 3], Chance::new(1));
        Self { world, cluster }
    }

    fn process(&self, ahead: Duration) -> Process {
        let actor = self.world.new_actor();
        let ahead = i64::try_from(ahead.as_micros()).unwrap();
        let clocks = Clocks::new(&self.world, actor, 1.0, ahead, Chance::new(2 + ahead as u64));
        let connection = Connection::new(&self.world, &self.cluster, &clocks, Duration::from_secs(1));
        Process { actor, clocks, connection: Arc::new(connection) }
    }

    fn run(&self, time: Duration) {
        let until = self.world.now() + u64::try_from(time.as_nanos()).unwrap();
        self.world.run(until, || false);
    }

    /// Acquires and gives back, once. Returns the ticket that the store showed.
    fn acquire(&self, process: &Process, engine: &Arc<CassandraEngine>) -> i64 {
        let done = Arc::new(AtomicBool::new(false));
        let key = Key::new("group", "name").unwrap();
        let (id, owner) = (AcquisitionId::new(&*process.clocks), Owner::from_bytes([1; 16]));
        let request = Request::new(key.clone(), id, Mode::Write, owner, ClientName::default(), LEASE);
        let (visitor, is_done, id) = (Arc::clone(engine), Arc::clone(&done), request.id);
        let visit = async move {
            visitor.acquire(&request).await.unwrap();
            visitor.release(&request.key, request.id, None).await.unwrap();
            is_done.store(true, Ordering::Relaxed);
        };
        self.world.spawn(process.actor, Box::pin(visit));
        let until = self.world.now() + 60_000_000_000;
        assert!(self.world.run(until, || done.load(Ordering::Relaxed)), "acquired within a minute");
        let look = self.cluster.truth(&key).unwrap();
        let rows = look.rows.iter().filter_map(|seen| seen.row.as_ref());
        rows.filter(|row| row.acquisition == id).map(|row| row.ticket.get()).next().unwrap()
    }
}

impl Process {
    fn global_time(&self) -> Arc<GlobalTime> {
        let time = GlobalTime::new(
            Arc::clone(&self.connection) as Arc<dyn TimeCell>,
            Arc::clone(&self.clocks) as Arc<dyn Environment>,
        );
        time.keep_going();
        time
    }

    fn engine(&self) -> Arc<CassandraEngine> {
        let options =
            CassandraOptions::new("simulated").with_lease(LEASE).with_request_timeout(Duration::from_secs(1));
        let store = Arc::clone(&self.connection) as Arc<dyn Store>;
        Arc::new(CassandraEngine::over(store, Arc::clone(&self.clocks) as Arc<dyn Environment>, &options))
    }
}

/// Theorem 5, and its price: after a client whose clock is ten minutes ahead has died, no clock is ahead of the cell for ten minutes.
#[test]
fn global_time_stands_still_after_a_clock_that_ran_ahead() {
    let fixture = Fixture::new();
    let (fast, sound) = (fixture.process(TEN_MINUTES), fixture.process(Duration::ZERO));
    let (dying, time) = (fast.global_time(), sound.global_time());
    fixture.run(Duration::from_secs(2));
    fixture.world.kill(fast.actor);
    drop(dying);
    fixture.run(Duration::from_secs(2));
    let standing = time.latest();
    assert!(standing > sound.clocks.wall_micros() + 590_000_000, "it went ahead");
    for _ in 0..9 {
        fixture.run(Duration::from_secs(60));
        assert_eq!(time.latest(), standing);
    }
    fixture.run(Duration::from_secs(120));
    assert!(time.latest() > standing, "its own clock has caught up");
}

/// With hybrid clocks: clients that meet the fast clock do not follow it, and say so.
#[test]
fn hybrid_clocks_go_on_after_a_clock_that_ran_ahead() {
    let fixture = Fixture::new();
    let (fast, sound) = (fixture.process(TEN_MINUTES), fixture.process(Duration::ZERO));
    let (dying, engine) = (fast.engine(), sound.engine());
    let ahead = fixture.acquire(&fast, &dying);
    fixture.world.kill(fast.actor);
    let mut last = fixture.acquire(&sound, &engine);
    assert!(engine.refused_tickets() > 0, "the fast one was met");
    for _ in 0..9 {
        fixture.run(Duration::from_secs(60));
        let ticket = fixture.acquire(&sound, &engine);
        assert!(last + 60_000_000 <= ticket && ticket < ahead, "{last}, then {ticket}, before {ahead}");
        last = ticket;
    }
}
