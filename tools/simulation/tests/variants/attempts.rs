//! One directed schedule: a claim in doubt whose first attempt is at one node only, which is away when the claim is sent again, and back,
//! with a copy that has ended, while the claim is relied on.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use ylock_core::engine::{AcquisitionId, Engine, Grant, Request, valid_until};
use ylock_core::environment::Environment;
use ylock_core::{ClientName, Key, Mode, Owner};
use ylock_engine_cassandra::CassandraOptions;
use ylock_engine_cassandra::options::Expiry;
use ylock_simulation::chance::Chance;
use ylock_simulation::clocks::Clocks;
use ylock_simulation::setting::real_engine;
use ylock_simulation::store::{Cluster, Connection, Weather};
use ylock_simulation::world::World;

use crate::store::{Defect, broken_store};

const LEASE: Duration = Duration::from_secs(5);
const SEEDS: u64 = 100;

type Make = dyn Fn(Arc<Connection>, &Arc<Clocks>, &CassandraOptions) -> Arc<dyn Engine>;

struct Fixture {
    world: Arc<World>,
    cluster: Arc<Cluster>,
    chance: Chance,
}

/// What a client was granted, if anything.
type Granted = Arc<Mutex<Option<Grant>>>;

impl Fixture {
    fn new(seed: u64) -> Self {
        let world = World::new(false);
        let weather = Weather {
            hints: false,
            read_repair: false,
            ..Weather::calm((Duration::from_millis(1), Duration::from_millis(3)))
        };
        let mut chance = Chance::new(seed);
        let cluster = Cluster::new(&world, weather, &[0; 3], chance.fork());
        Self { world, cluster, chance }
    }

    /// A client that waits for the lock, holds it when it has it, and does not renew it.
    fn client(&mut self, make: &Make) -> (Arc<Clocks>, Granted) {
        let actor = self.world.new_actor();
        let clocks = Clocks::new(&self.world, actor, 1.0, 0, self.chance.fork());
        let connection = Connection::new(&self.world, &self.cluster, &clocks, LEASE / 5);
        let options = CassandraOptions::new("simulated")
            // The copy of the first attempt must have ended while the claim is relied on.
            .with_expiry(Expiry::Ttl)
            .with_lease(LEASE)
            .with_request_timeout(LEASE / 5);
        let engine = make(Arc::new(connection), &clocks, &options);
        let (key, id) = (Key::new("group", "name").unwrap(), AcquisitionId::new(&*clocks));
        let owner = Owner::from_bytes([1; 16]);
        let request = Request::new(key, id, Mode::Write, owner, ClientName::default(), LEASE);
        let granted = Granted::default();
        let told = Arc::clone(&granted);
        let acquiring = async move { *told.lock() = engine.acquire(&request).await.ok().flatten() };
        self.world.spawn(actor, Box::pin(acquiring));
        (clocks, granted)
    }

    fn run_until(&self, moment: Duration) {
        self.world.run(u64::try_from(moment.as_nanos()).unwrap(), || false);
    }
}

/// Whether two clients hold the lock at once.
fn two_get_in(seed: u64, make: &Make) -> bool {
    let mut fixture = Fixture::new(seed);
    fixture.cluster.stop(1);
    fixture.cluster.stop(2);
    let (clocks, first) = fixture.client(make);
    fixture.run_until(Duration::from_millis(900));
    fixture.cluster.stop(0);
    fixture.run_until(Duration::from_millis(4_200));
    fixture.cluster.start(1);
    fixture.cluster.start(2);
    fixture.run_until(Duration::from_millis(5_600));
    fixture.cluster.start(0);
    fixture.cluster.stop(2);
    let (_, second) = fixture.client(make);
    let until = first.lock().as_ref().map(|grant| valid_until(grant.sent, grant.lease));
    while until.is_some_and(|until| clocks.now() < until) {
        fixture.run_until(Duration::from_nanos(fixture.world.now()) + Duration::from_millis(10));
        if second.lock().is_some() {
            return until.is_some_and(|until| clocks.now() < until);
        }
    }
    false
}

#[test]
fn two_attempts_with_one_timestamp_let_two_in() {
    let make = broken_store(Defect::OneStampForTwoAttempts);
    let at = 58;
    crate::support::must_be_found("two_attempts_with_one_timestamp_let_two_in", at, SEEDS, |seed| {
        two_get_in(seed, &make).then(|| "two valid holders".to_owned())
    });
}

#[test]
fn a_timestamp_for_each_attempt_lets_one_in() {
    assert_eq!((0..SEEDS).find(|seed| two_get_in(*seed, &real_engine)), None);
}
