//! Rows that are observed, where nothing goes wrong but that a holder dies and the clocks of the nodes are years apart.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use ylock_core::engine::{AcquisitionId, Engine, Grant, Holding, Renewal, Request};
use ylock_core::environment::Environment;
use ylock_core::{ClientName, Key, Mode, Owner};
use ylock_engine_cassandra::CassandraOptions;
use ylock_engine_cassandra::options::Expiry;
use ylock_simulation::chance::Chance;
use ylock_simulation::clocks::Clocks;
use ylock_simulation::setting::real_engine;
use ylock_simulation::store::{Cluster, Connection, Weather};
use ylock_simulation::world::{Actor, World};

const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// Of the nodes, in microseconds.
const CLOCKS: [i64; 3] = [0, 30_000_000_000_000, -31_000_000_000_000];
const LONGEST_MESSAGE: Duration = Duration::from_millis(3);
/// To the coordinator, to a replica, and back.
const LONGEST_REQUEST: Duration = Duration::from_millis(12);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

struct Fixture {
    world: Arc<World>,
    cluster: Arc<Cluster>,
    chance: Chance,
    lease: Duration,
}

struct Process {
    actor: Actor,
    clocks: Arc<Clocks>,
    engine: Arc<dyn Engine>,
}

/// When things happened, in the time of the world.
type Moments = Arc<Mutex<Vec<Duration>>>;

impl Fixture {
    fn new(seed: u64, lease: Duration) -> Self {
        let world = World::new(false);
        let weather = Weather::calm((Duration::from_millis(1), LONGEST_MESSAGE));
        let mut chance = Chance::new(seed);
        let cluster = Cluster::new(&world, weather, &CLOCKS, chance.fork());
        Self { world, cluster, chance, lease }
    }

    fn process(&mut self) -> Process {
        let (actor, timeout) = (self.world.new_actor(), self.lease / 5);
        let clocks = Clocks::new(&self.world, actor, 1.0, 0, self.chance.fork());
        let connection = Connection::new(&self.world, &self.cluster, &clocks, timeout);
        let options = CassandraOptions::new("simulated")
            .with_lease(self.lease)
            .with_request_timeout(timeout)
            .with_expiry(Expiry::Observed)
            .with_max_clock_skew(2 * YEAR)
            .with_token_ttl(5 * YEAR);
        let engine = real_engine(Arc::new(connection), &clocks, &options);
        Process { actor, clocks, engine }
    }

    /// A process that holds the lock and renews it so often; returns when each of its heartbeats was acknowledged.
    fn holder(&mut self, renewals: u64) -> (Actor, Moments) {
        let (process, heartbeats) = (self.process(), Moments::default());
        let Process { actor, clocks, engine } = process;
        let (request, world, acknowledged) =
            (request(&clocks, self.lease), Arc::clone(&self.world), Arc::clone(&heartbeats));
        let holding = async move {
            let mut grant: Grant = engine.acquire(&request).await.unwrap().unwrap();
            acknowledged.lock().push(now(&world));
            for _ in 0..renewals {
                clocks.sleep(grant.lease / 3).await;
                let renewed = engine.renew(&[Holding::new(grant.clone(), None)]).await.remove(0);
                let Ok(Renewal::Renewed { sent, .. }) = renewed else { panic!("{renewed:?}") };
                grant.sent = sent;
                acknowledged.lock().push(now(&world));
            }
        };
        self.world.spawn(actor, Box::pin(holding));
        (actor, heartbeats)
    }

    /// Processes that wait for the lock; returns when one of them got it.
    fn waiters(&mut self, count: u64) -> Moments {
        let entries = Moments::default();
        for _ in 0..count {
            let Process { actor, clocks, engine } = self.process();
            let (request, world, entries) =
                (request(&clocks, self.lease), Arc::clone(&self.world), Arc::clone(&entries));
            let waiting = async move {
                engine.acquire(&request).await.unwrap().unwrap();
                entries.lock().push(now(&world));
            };
            self.world.spawn(actor, Box::pin(waiting));
        }
        entries
    }

    fn run_until(&self, what: &str, condition: impl Fn() -> bool) {
        let until = self.world.now() + 60_000_000_000;
        assert!(self.world.run(until, condition), "{what}: not within a minute");
    }

    fn run(&self, time: Duration) {
        self.world.run(self.world.now() + u64::try_from(time.as_nanos()).unwrap(), || false);
    }

    /// Lets a holder die so long after its last heartbeat, with so many waiters. Returns that heartbeat and the next entry.
    fn death(&mut self, waiters: u64) -> (Duration, Duration) {
        let renewals = 1 + self.chance.below(4);
        let (holder, heartbeats) = self.holder(renewals);
        self.run_until("the holder is inside", || !heartbeats.lock().is_empty());
        let entries = self.waiters(waiters);
        self.run_until("the last heartbeat", || heartbeats.lock().len() as u64 == renewals + 1);
        let rest = self.chance.between(Duration::ZERO, self.lease / 3);
        self.run(rest);
        self.world.kill(holder);
        self.run_until("the next entry", || !entries.lock().is_empty());
        let (last, entry) = (*heartbeats.lock().last().unwrap(), entries.lock()[0]);
        (last, entry)
    }
}

fn request(clocks: &Clocks, lease: Duration) -> Request {
    let (key, id) = (Key::new("group", "name").unwrap(), AcquisitionId::new(clocks));
    let owner = Owner::from_bytes(id.as_u128().to_be_bytes());
    Request::new(key, id, Mode::Write, owner, ClientName::default(), lease)
}

fn now(world: &World) -> Duration {
    Duration::from_nanos(world.now())
}

/// The heartbeat is seen a pause and a look after it was acknowledged; a lease after that, at most a pause later, a look finds it dead; then there
/// are a burial and one more look.
#[test]
fn the_next_client_gets_in_a_lease_two_pauses_and_four_requests_after_the_last_heartbeat() {
    for lease in [500, 1_000, 5_000, 10_000].map(Duration::from_millis) {
        let longest = lease + LONGEST_PAUSE.min(lease / 3) * 2 + LONGEST_REQUEST * 4;
        let mut latest = Duration::ZERO;
        for seed in 0..50 {
            let (heartbeat, entry) = Fixture::new(seed, lease).death(1 + seed % 3);
            let time = entry - heartbeat;
            // Sent a request before, so its validity ends nine tenths of a lease later, or less than that of a short one.
            assert!(time > lease * 3 / 4, "lease {lease:?}, seed {seed}: in after {time:?}");
            assert!(time <= longest, "lease {lease:?}, seed {seed}: in after {time:?}");
            latest = latest.max(time);
        }
        println!("lease {lease:?}: in after {latest:?} at the latest, of {longest:?}");
    }
}

/// Those further behind come later, and find nothing left to bury.
#[test]
fn a_death_costs_two_burials_at_most_however_many_wait() {
    for seed in 0..50 {
        let mut fixture = Fixture::new(seed, Duration::from_secs(5));
        fixture.death(12);
        let burials = fixture.cluster.heartbeats.burials();
        assert!((1..=2).contains(&burials), "seed {seed}: {burials}");
    }
}

/// Without them the lock would stay closed until its row ends: for years, here.
#[test]
fn those_behind_bury_what_the_first_ones_do_not() {
    for seed in 0..20 {
        let mut fixture = Fixture::new(seed, Duration::from_secs(5));
        let (first, _) = fixture.holder(0);
        fixture.run(Duration::from_millis(200));
        // Two waiters that die with the holder stand before the one that lives.
        let dying: Vec<_> = (0..2)
            .map(|_| {
                let Process { actor, clocks, engine } = fixture.process();
                let request = request(&clocks, fixture.lease);
                fixture.world.spawn(actor, Box::pin(async move { drop(engine.acquire(&request).await) }));
                fixture.run(Duration::from_millis(200));
                actor
            })
            .collect();
        let entries = fixture.waiters(1);
        fixture.run(Duration::from_secs(1));
        dying.into_iter().chain([first]).for_each(|actor| fixture.world.kill(actor));
        let began = now(&fixture.world);
        fixture.run_until("the next entry", || !entries.lock().is_empty());
        let time = entries.lock()[0] - began;
        assert!(time <= fixture.lease + 3 * LONGEST_PAUSE, "seed {seed}: in after {time:?}");
    }
}
