//! How long a lock stands free while clients wait for it, where nothing goes wrong: a turn that is missed is found only when a waiter looks again by
//! itself, two leases later.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use ylock_core::engine::{AcquisitionId, Engine, Request};
use ylock_core::environment::Environment;
use ylock_core::url::Host;
use ylock_core::{ClientName, Key, Mode, Owner};
use ylock_engine_etcd::{EtcdEngine, EtcdOptions};
use ylock_simulation::chance::Chance;
use ylock_simulation::clocks::Clocks;
use ylock_simulation::etcd::{Client, Cluster, Mistakes, Rules};
use ylock_simulation::setting::WrapEtcd;
use ylock_simulation::store::Weather;
use ylock_simulation::world::World;

use crate::etcd::{Defect, broken};
use crate::{APART, places};

const LEASE: Duration = Duration::from_secs(5);
const HELD: Duration = Duration::from_millis(5);
const CLIENTS: usize = 4;
const TIME: Duration = Duration::from_secs(20);
/// A few requests, and by far less than a lease.
const LONGEST_GAP: Duration = Duration::from_millis(300);
const SEEDS: u64 = 50;

/// The time at which the lock was given back, and the longest for which it stood free.
#[derive(Default)]
struct Turns {
    left: Option<u64>,
    longest: u64,
    count: u64,
}

/// A client that goes in and out.
async fn visits(engine: EtcdEngine, world: Arc<World>, clocks: Arc<Clocks>, turns: Arc<Mutex<Turns>>) {
    let key = Key::new("group", "name").expect("a key");
    loop {
        let (id, owner) = (AcquisitionId::new(&*clocks), Owner::from_bytes([1; 16]));
        let request = Request::new(key.clone(), id, Mode::Write, owner, ClientName::default(), LEASE);
        engine.acquire(&request).await.expect("an answer").expect("a grant");
        {
            let mut turns = turns.lock();
            let gap = turns.left.map_or(0, |left| world.now() - left);
            (turns.longest, turns.count) = (gap.max(turns.longest), turns.count + 1);
        }
        clocks.sleep(HELD).await;
        turns.lock().left = Some(world.now());
        engine.release(&key, id, None).await.expect("an answer");
    }
}

fn turns(seed: u64, make: &WrapEtcd) -> (Duration, u64) {
    let (world, mut chance, ms) = (World::new(false), Chance::new(seed), Duration::from_millis);
    // One member, which answers a look at once: with more, a watch has begun before.
    let rules = Rules { patience: ms(3_000), trust: ms(3_000), lag: ms(0), rates: vec![1.0] };
    let cluster = Cluster::new(&world, rules, Weather::calm((ms(1), ms(5))), chance.fork());
    let turns = Arc::new(Mutex::new(Turns::default()));
    for _ in 0..CLIENTS {
        let actor = world.new_actor();
        let clocks = Clocks::new(&world, actor, 1.0, 0, chance.fork());
        let client = Client::new(&cluster, &clocks, LEASE / 5, Mistakes::default());
        let options = EtcdOptions::new([Host::new("simulated", None)]).with_lease(LEASE);
        let environment: Arc<dyn Environment> = Arc::clone(&clocks) as _;
        let engine = EtcdEngine::over(make(Arc::new(client), &clocks), environment, &options);
        let visits = visits(engine, Arc::clone(&world), Arc::clone(&clocks), Arc::clone(&turns));
        world.spawn(actor, Box::pin(visits));
    }
    world.run(u64::try_from(TIME.as_nanos()).expect("a time"), || false);
    world.end();
    let turns = turns.lock();
    (Duration::from_nanos(turns.longest), turns.count)
}

#[test]
fn no_turn_is_missed_where_nothing_goes_wrong() {
    for seed in 0..SEEDS {
        let (longest, count) = turns(seed, &|store, _| store);
        assert!(longest < LONGEST_GAP && count > 100, "seed {seed}: {longest:?}, {count} turns");
    }
}

#[test]
fn a_look_from_before_the_watch_is_believed() {
    for first in (0..places()).map(|place| place * APART) {
        let make = broken(Defect::BelievesOldLooks);
        let found = (first..first + SEEDS).find(|seed| turns(*seed, &make).0 > LONGEST_GAP);
        let seeds = found.map(|seed| seed + 1 - first);
        println!("| a look from before the watch is believed | {seeds:?} | a turn is missed |");
        assert!(found.is_some(), "{SEEDS} seeds from {first} on did not find it");
    }
}
