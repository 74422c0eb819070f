//! A lock that goes from client to client, where nothing goes wrong. How long it stands free while clients wait for it: a turn that is missed is found
//! only when a waiter looks again by itself, two leases later. And whether two are inside where members are behind.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use ylock_core::engine::{AcquisitionId, Engine, Request};
use ylock_core::environment::Environment;
use ylock_core::url::Host;
use ylock_core::{ClientName, Key, Mode, Owner};
use ylock_engine_etcd::algorithm::store::{Granted, Outcome, Pending, Store, Transaction, Watching};
use ylock_engine_etcd::{EtcdEngine, EtcdOptions};
use ylock_simulation::chance::Chance;
use ylock_simulation::clocks::Clocks;
use ylock_simulation::etcd::{Client, Cluster, Mistakes, Rules};
use ylock_simulation::setting::WrapEtcd;
use ylock_simulation::store::Weather;
use ylock_simulation::world::World;

use crate::etcd::{Defect, broken};
use crate::places;
use crate::support::must_be_found;

const LEASE: Duration = Duration::from_secs(5);
/// The shortest time for which a client is inside.
const HELD: Duration = Duration::from_millis(5);
const TIME: Duration = Duration::from_secs(20);
/// A few requests, and by far less than a lease.
const LONGEST_GAP: Duration = Duration::from_millis(300);
const SEEDS: u64 = 50;

/// The time at which the lock was given back, the longest for which it stood free, and how many clients were inside at once.
#[derive(Default)]
struct Turns {
    left: Option<u64>,
    longest: u64,
    count: u64,
    inside: u64,
    most: u64,
}

/// A client that goes in and out. It is inside for this time longer now and then.
async fn visits(
    engine: EtcdEngine,
    world: Arc<World>,
    clocks: Arc<Clocks>,
    longer: Duration,
    turns: Arc<Mutex<Turns>>,
) {
    let key = Key::new("group", "name").expect("a key");
    loop {
        let (id, owner) = (AcquisitionId::new(&*clocks), Owner::from_bytes([1; 16]));
        let request = Request::new(key.clone(), id, Mode::Write, owner, ClientName::default(), LEASE);
        engine.acquire(&request).await.expect("an answer").expect("a grant");
        {
            let mut turns = turns.lock();
            let gap = turns.left.map_or(0, |left| world.now() - left);
            (turns.longest, turns.count) = (gap.max(turns.longest), turns.count + 1);
            turns.inside += 1;
            turns.most = turns.most.max(turns.inside);
        }
        let is_long = clocks.random().is_multiple_of(8);
        clocks.sleep(if is_long { HELD + longer } else { HELD }).await;
        {
            let mut turns = turns.lock();
            (turns.left, turns.inside) = (Some(world.now()), turns.inside - 1);
        }
        engine.release(&key, id, None).await.expect("an answer");
    }
}

/// One member, which answers a look at once: with more, a watch has begun before.
fn turns(seed: u64, make: &WrapEtcd) -> (Duration, u64) {
    let turns = played(seed, make, Duration::ZERO, 1, 4);
    (Duration::from_nanos(turns.longest), turns.count)
}

/// Plays for a while. The members carry out what was done by as much later.
fn played(seed: u64, make: &WrapEtcd, lag: Duration, members: usize, clients: usize) -> Turns {
    let (world, mut chance, ms) = (World::new(false), Chance::new(seed), Duration::from_millis);
    let rules = Rules { patience: ms(3_000), trust: ms(3_000), lag, rates: vec![1.0; members] };
    let cluster = Cluster::new(&world, rules, Weather::calm((ms(1), ms(5))), chance.fork());
    let turns = Arc::new(Mutex::new(Turns::default()));
    for _ in 0..clients {
        let actor = world.new_actor();
        let clocks = Clocks::new(&world, actor, 1.0, 0, chance.fork());
        let client = || Client::new(&cluster, &clocks, LEASE / 5, Mistakes::default());
        let client = Moving { asks: client(), watches: client() };
        let options = EtcdOptions::new([Host::new("simulated", None)]).with_lease(LEASE);
        let environment: Arc<dyn Environment> = Arc::clone(&clocks) as _;
        let engine = EtcdEngine::over(make(Arc::new(client), &clocks), environment, &options);
        // Many visits happen within the time by which a member is behind, and some take longer.
        let visits = visits(engine, Arc::clone(&world), Arc::clone(&clocks), lag * 2, Arc::clone(&turns));
        world.spawn(actor, Box::pin(visits));
    }
    world.run(u64::try_from(TIME.as_nanos()).expect("a time"), || false);
    world.end();
    std::mem::take(&mut *turns.lock())
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
    let make = broken(Defect::BelievesOldLooks);
    for first in places(0) {
        must_be_found("a_look_from_before_the_watch_is_believed", first, SEEDS, |seed| {
            let longest = turns(seed, &make).0;
            (longest > LONGEST_GAP).then(|| format!("the lock stood free for {longest:?}"))
        });
    }
}

/// A client that goes on to another member between a request and the watch that follows it, each time.
#[derive(Debug)]
struct Moving {
    asks: Client,
    watches: Client,
}

impl Store for Moving {
    fn transact(&self, transaction: Transaction) -> Pending<'_, Outcome> {
        self.asks.transact(transaction)
    }

    fn grant(&self, seconds: i64) -> Pending<'_, Granted> {
        self.asks.grant(seconds)
    }

    fn revoke(&self, lease: i64) -> Pending<'_, ()> {
        self.asks.revoke(lease)
    }

    fn watch(&self, key: Vec<u8>, changes: bool) -> Pending<'_, Watching> {
        self.watches.watch(key, changes)
    }
}

/// The longest time by which members are behind.
const BEHIND: Duration = Duration::from_millis(200);

#[test]
fn none_is_inside_beside_another_where_members_are_behind() {
    for seed in 0..SEEDS {
        let turns = played(seed, &|store, _| store, BEHIND, 3, 2);
        let Turns { most, count, .. } = turns;
        assert!(most == 1 && count > 20, "seed {seed}: {most} are inside at once, {count} turns");
    }
}

/// A client uses its keys again: a member that is behind tells of the deletion of a key that was made again since.
#[test]
fn an_old_deletion_is_believed() {
    let make = broken(Defect::BelievesOldDeletions);
    for first in places(37) {
        must_be_found("an_old_deletion_is_believed", first, SEEDS * 10, |seed| {
            let most = played(seed, &make, BEHIND, 3, 2).most;
            (most > 1).then(|| format!("{most} are inside"))
        });
    }
}
