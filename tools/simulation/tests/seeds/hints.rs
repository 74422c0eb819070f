//! Clients that tell each other to look: what a hand-over costs and takes in a calm world, and what becomes of it when hints are lost or forged.

use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use ylock_core::engine::{AcquisitionId, Engine, Request};
use ylock_core::environment::Environment;
use ylock_core::{ClientName, Key, Mode, Owner, Result};
use ylock_engine_cassandra::algorithm::store::{LastTokens, Page, Partition, Slot, Store, Write};
use ylock_engine_cassandra::hints::{Carrier, Datagram, Receiver};
use ylock_engine_cassandra::options::Notify;
use ylock_engine_cassandra::{CassandraEngine, CassandraOptions};
use ylock_simulation::chance::Chance;
use ylock_simulation::clocks::Clocks;
use ylock_simulation::store::{Cluster, Connection, HintWeather, Weather, Wire};
use ylock_simulation::world::World;
use ylock_simulation::{Setting, run};

use crate::support;

const LEASE: Duration = Duration::from_secs(10);
const HOLD: Duration = Duration::from_millis(5);
/// The longest of holds that differ.
const ANY_HOLD: Duration = Duration::from_millis(4);
/// The times that a message from or to a node may take.
const MESSAGE: (Duration, Duration) = (Duration::from_micros(100), Duration::from_micros(250));
/// From the client to the coordinator, to a replica, and back.
const LONGEST_REQUEST: Duration = Duration::from_millis(1);

/// The way of a client to the store and from other clients. It forgets what it is told while it looks.
struct Forgetful {
    connection: Arc<Connection>,
    wire: Arc<Wire>,
    looks: AtomicBool,
    receiver: Mutex<Option<Weak<dyn Receiver>>>,
    this: Weak<Self>,
}

impl Forgetful {
    fn new(connection: &Arc<Connection>) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            connection: Arc::clone(connection),
            wire: connection.carrier(),
            looks: AtomicBool::new(false),
            receiver: Mutex::default(),
            this: Weak::clone(this),
        })
    }
}

impl fmt::Debug for Forgetful {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Forgetful")
    }
}

impl Receiver for Forgetful {
    fn receive(&self, from: SocketAddr, bytes: &[u8]) {
        let receiver = self.receiver.lock().as_ref().and_then(Weak::upgrade);
        if let Some(receiver) = receiver.filter(|_| !self.looks.load(Ordering::Relaxed)) {
            receiver.receive(from, bytes);
        }
    }
}

impl Carrier for Forgetful {
    fn address(&self) -> SocketAddr {
        self.wire.address()
    }

    fn send(&self, to: SocketAddr, datagram: &Datagram) {
        self.wire.send(to, datagram);
    }

    fn deliver_to(&self, receiver: Weak<dyn Receiver>) {
        *self.receiver.lock() = Some(receiver);
        let this: Weak<Self> = Weak::clone(&self.this);
        self.wire.deliver_to(this);
    }
}

#[async_trait]
impl Store for Forgetful {
    async fn write(&self, key: &Key, slot: Slot, write: &Write) -> Result<()> {
        self.connection.write(key, slot, write).await
    }

    async fn read(&self, key: &Key) -> Result<Partition> {
        self.looks.store(true, Ordering::Relaxed);
        let look = self.connection.read(key).await;
        self.looks.store(false, Ordering::Relaxed);
        look
    }

    async fn read_last_tokens(&self, key: &Key) -> Result<LastTokens> {
        self.connection.read_last_tokens(key).await
    }

    async fn keys(&self, after: Option<i64>) -> Result<Page> {
        self.connection.keys(after).await
    }

    async fn revoke(&self, key: &Key, slot: Slot, id: AcquisitionId, stamp: i64, ttl: u32) -> Result<()> {
        self.connection.revoke(key, slot, id, stamp, ttl).await
    }

    async fn bury(&self, key: &Key, slot: Slot, heartbeat: i64) -> Result<()> {
        self.connection.bury(key, slot, heartbeat).await
    }

    async fn erase(&self, key: &Key, slot: Slot, stamp: i64) -> Result<()> {
        self.connection.erase(key, slot, stamp).await
    }
}

/// Clients that go in and out.
struct Fixture {
    world: Arc<World>,
    cluster: Arc<Cluster>,
    chance: Chance,
    notify: Notify,
    /// True for clients that forget what they are told while they look.
    forgets: bool,
    /// From a release that was acknowledged to the next entry.
    gaps: Arc<Mutex<Vec<Duration>>>,
    left: Arc<AtomicU64>,
    engines: Vec<Arc<CassandraEngine>>,
    addresses: Vec<SocketAddr>,
}

impl Fixture {
    fn new(seed: u64, notify: Notify) -> Self {
        let world = World::new(false);
        let weather = Weather::calm(MESSAGE);
        let mut chance = Chance::new(seed);
        let cluster = Cluster::new(&world, weather, &[0, 0, 0], chance.fork());
        cluster.network.begin(HintWeather::calm(), chance.fork());
        let (gaps, left) = (Arc::default(), Arc::new(AtomicU64::new(u64::MAX)));
        Self {
            world,
            cluster,
            chance,
            notify,
            forgets: false,
            gaps,
            left,
            engines: Vec::new(),
            addresses: Vec::new(),
        }
    }

    fn client(&mut self, hold: Duration) {
        self.client_that(Mode::Write, hold);
    }

    fn client_that(&mut self, mode: Mode, hold: Duration) {
        let vary = hold == ANY_HOLD;
        let actor = self.world.new_actor();
        let clocks = Clocks::new(&self.world, actor, 1.0, 0, self.chance.fork());
        let connection = Arc::new(Connection::new(&self.world, &self.cluster, &clocks, LEASE / 5));
        let options = CassandraOptions::new("simulated").with_lease(LEASE).with_notify(self.notify);
        let forgetful = Forgetful::new(&connection);
        let store: Arc<dyn Store> =
            if self.forgets { Arc::clone(&forgetful) as _ } else { Arc::clone(&connection) as _ };
        let carrier: Arc<dyn Carrier> = if self.forgets { forgetful } else { connection.carrier() };
        self.addresses.push(carrier.address());
        let engine = CassandraEngine::over(store, Arc::clone(&clocks) as _, &options);
        let engine = match self.notify {
            Notify::Udp => engine.with_hints(carrier, &options),
            _ => engine,
        };
        let engine = Arc::new(engine);
        self.engines.push(Arc::clone(&engine));
        let (world, gaps, left) = (Arc::clone(&self.world), Arc::clone(&self.gaps), Arc::clone(&self.left));
        let life = async move {
            loop {
                let request = request(&clocks, mode);
                engine.acquire(&request).await.unwrap().unwrap();
                let gap = world.now().checked_sub(left.swap(u64::MAX, Ordering::Relaxed));
                gaps.lock().extend(gap.map(Duration::from_nanos));
                let part = if vary { (&*clocks as &dyn Environment).fraction() } else { 1.0 };
                clocks.sleep(hold.mul_f64(part)).await;
                engine.release(&request.key, request.id, None).await.unwrap();
                left.store(world.now(), Ordering::Relaxed);
            }
        };
        self.world.spawn(actor, Box::pin(life));
    }

    fn run(&self, time: Duration) {
        self.world.run(self.world.now() + u64::try_from(time.as_nanos()).unwrap(), || false);
    }

    /// Returns the requests per hand-over, and the gaps in order, of so long a time.
    fn measure(&self, time: Duration) -> (f64, Vec<Duration>) {
        let before = self.cluster.requests();
        self.gaps.lock().clear();
        self.run(time);
        let mut gaps = std::mem::take(&mut *self.gaps.lock());
        gaps.sort_unstable();
        ((self.cluster.requests() - before) as f64 / gaps.len() as f64, gaps)
    }

    fn missed(&self) -> u64 {
        self.engines.iter().map(|engine| engine.hints().missed).sum()
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.world.end();
    }
}

fn request(clocks: &Clocks, mode: Mode) -> Request {
    let (key, id) = (Key::new("group", "name").unwrap(), AcquisitionId::new(clocks));
    let owner = Owner::from_bytes(id.as_u128().to_be_bytes());
    Request::new(key, id, mode, owner, ClientName::default(), LEASE)
}

fn contend(seed: u64, clients: usize, notify: Notify) -> Fixture {
    let mut fixture = Fixture::new(seed, notify);
    (0..clients).for_each(|_| fixture.client(HOLD));
    // Each has been inside once or twice.
    fixture.run(Duration::from_secs(2));
    fixture
}

/// Release, look, and the row that says so; look of the next one, and its claim; and the row of the one that comes again.
#[test]
fn a_hand_over_costs_six_requests_and_takes_a_message_and_a_look() {
    for clients in [2, 4, 32, 64] {
        let mut all = Vec::new();
        for seed in 0..3 {
            let fixture = contend(seed, clients, Notify::Udp);
            let (requests, gaps) = fixture.measure(Duration::from_secs(5));
            let (median, longest) = (gaps[gaps.len() / 2], gaps[gaps.len() - 1]);
            all.push(requests);
            println!(
                "{clients:2} clients, seed {seed}: {requests:.2} requests, gap {median:?}, at most {longest:?}, {} hand-overs, missed {}",
                gaps.len(),
                fixture.missed()
            );
            assert!(median <= LONGEST_REQUEST * 2, "{clients} clients, seed {seed}: {median:?}");
            assert!(longest <= Duration::from_millis(50), "{clients} clients, seed {seed}: {longest:?}");
            assert_eq!(fixture.missed(), 0, "{clients} clients, seed {seed}");
        }
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        let most = if clients == 2 { 6.5 } else { 6.2 };
        assert!(mean <= most, "{clients} clients: {mean} requests");
    }
}

/// As it is without hints, for comparison, and not worse by what makes hints possible.
#[test]
fn without_hints_a_hand_over_costs_twice_as_much() {
    for clients in [2, 32] {
        let (requests, gaps) = contend(0, clients, Notify::Off).measure(Duration::from_secs(5));
        println!("{clients:2} clients, not told: {requests:.2} requests, gap {:?}", gaps[gaps.len() / 2]);
    }
}

/// Hints that do not come any more cost two turns each a long pause; then waiters look as often as without.
#[test]
fn when_hints_stop_coming_waiters_fall_back() {
    for seed in 0..5 {
        let fixture = contend(seed, 4, Notify::Udp);
        fixture.cluster.network.begin(HintWeather { loss: 1.0, ..HintWeather::calm() }, Chance::new(seed));
        let (_, gaps) = fixture.measure(Duration::from_secs(30));
        let longest = gaps[gaps.len() - 1];
        assert!(longest <= LEASE / 3 * 11 / 10, "seed {seed}: {longest:?}");
        assert!((4..=24).contains(&fixture.missed()), "seed {seed}: {}", fixture.missed());
        let long = gaps.iter().filter(|gap| **gap > Duration::from_millis(100)).count();
        assert!(long <= 24, "seed {seed}: {long} of {} are long", gaps.len());
        assert!(gaps.len() > 1_000, "seed {seed}: {} hand-overs in half a minute", gaps.len());
    }
}

/// Of one client nothing comes. The one behind it learns in two turns not to rely on it, and tries again after a minute.
#[test]
fn one_client_among_others_of_which_nothing_comes_costs_few_long_pauses() {
    for seed in 0..2 {
        let fixture = contend(seed, 6, Notify::Udp);
        let mute = Some(fixture.addresses[0]);
        fixture.cluster.network.begin(HintWeather { mute, ..HintWeather::calm() }, Chance::new(seed));
        let (requests, gaps) = fixture.measure(Duration::from_secs(70));
        let long = gaps.iter().filter(|gap| **gap > Duration::from_millis(100)).count();
        println!("seed {seed}: {} hand-overs, {long} long, {requests:.2} requests", gaps.len());
        assert!((2..=6).contains(&long), "seed {seed}: {long} of {} are long", gaps.len());
        assert!(requests <= 8.0, "seed {seed}: {requests} requests");
        assert!(gaps.len() > 9_000, "seed {seed}: {} hand-overs", gaps.len());
    }
}

/// The same where readers and writers come in any order: each of the others learns by itself, for each that may stand before it.
#[test]
fn one_client_among_readers_and_writers_of_which_nothing_comes_costs_few_long_pauses() {
    for (seed, mode) in [(0, Mode::Write), (1, Mode::Read), (2, Mode::Write)] {
        let mut fixture = Fixture::new(seed, Notify::Udp);
        fixture.client_that(mode, ANY_HOLD);
        (0..3).for_each(|_| fixture.client_that(Mode::Read, ANY_HOLD));
        (0..2).for_each(|_| fixture.client_that(Mode::Write, ANY_HOLD));
        fixture.run(Duration::from_secs(2));
        let mute = Some(fixture.addresses[0]);
        fixture.cluster.network.begin(HintWeather { mute, ..HintWeather::calm() }, Chance::new(seed));
        let (_, gaps) = fixture.measure(Duration::from_secs(25));
        let long = gaps.iter().filter(|gap| **gap > Duration::from_millis(100)).count();
        println!("seed {seed}, mute {mode:?}: {} gaps, {long} long, missed {}", gaps.len(), fixture.missed());
        assert!((1..=20).contains(&long), "seed {seed}, mute {mode:?}: {long} of {} are long", gaps.len());
        // A turn that the look has found before the hint came was not missed.
        assert!(fixture.missed() <= 20, "seed {seed}, mute {mode:?}: missed {}", fixture.missed());
        assert!(gaps.len() > 1_500, "seed {seed}, mute {mode:?}: {} gaps", gaps.len());
    }
}

/// Returns the longest gap where holds are about as long as looks.
fn longest_gap(seed: u64, clients: usize, forgets: bool) -> Duration {
    let mut fixture = Fixture::new(seed, Notify::Udp);
    fixture.forgets = forgets;
    (0..clients).for_each(|_| fixture.client(ANY_HOLD));
    fixture.run(Duration::from_secs(1));
    let (_, gaps) = fixture.measure(Duration::from_secs(10));
    gaps[gaps.len() - 1]
}

/// Holds are about as long as looks: what a hint tells of is often not shown by the look that is on its way. Also a client that forgot such hints
/// would not wait for long, since it says that it waits and is answered by a client that has left; a test on a fake store finds that mistake.
#[test]
fn a_hint_that_comes_during_a_look_costs_no_long_pause() {
    for (seed, forgets) in (0..3).flat_map(|seed| [(seed, false), (seed, true)]) {
        let gap = longest_gap(seed, 4, forgets);
        assert!(gap < Duration::from_millis(50), "seed {seed}, forgets {forgets}: {gap:?}");
    }
}

/// A waiter sees a holder that is about to leave, says that it waits, and is heard too late. No other client tells it.
#[test]
fn a_waiter_that_is_heard_too_late_is_told_all_the_same() {
    for seed in 0..5 {
        let gap = longest_gap(seed, 2, false);
        assert!(gap < Duration::from_millis(50), "seed {seed}: {gap:?}");
    }
}

/// With hints that never come nothing is slower than without.
#[test]
fn where_no_hint_ever_comes_nothing_is_slower() {
    let mut fixture = Fixture::new(0, Notify::Udp);
    fixture.cluster.network.begin(HintWeather { loss: 1.0, ..HintWeather::calm() }, Chance::new(0));
    (0..8).for_each(|_| fixture.client(HOLD));
    fixture.run(Duration::from_secs(2));
    let (_, told) = fixture.measure(Duration::from_secs(10));
    let (_, off) = contend(0, 8, Notify::Off).measure(Duration::from_secs(10));
    assert_eq!(fixture.missed(), 0);
    assert!(told.len() * 10 > off.len() * 9, "{} hand-overs, {} without hints", told.len(), off.len());
}

/// An adversary that knows all keys, and rings all the time.
#[test]
fn forged_hints_cost_fifty_looks_a_second_at_most() {
    for seed in 0..3 {
        let mut fixture = Fixture::new(seed, Notify::Udp);
        fixture.client(Duration::from_secs(3_600));
        fixture.run(Duration::from_millis(100));
        (0..3).for_each(|_| fixture.client(HOLD));
        fixture.run(Duration::from_secs(5));
        let forged = Some(Duration::from_micros(200));
        fixture.cluster.network.begin(HintWeather { forged, ..HintWeather::calm() }, Chance::new(seed));
        let (before, delivered) = (fixture.cluster.requests(), fixture.cluster.network.delivered());
        fixture.run(Duration::from_secs(10));
        let (requests, hints) =
            (fixture.cluster.requests() - before, fixture.cluster.network.delivered() - delivered);
        assert!(hints > 50_000, "seed {seed}: {hints} hints");
        // Three waiters; the holder has no keeper, so nothing renews early.
        let most = 3 * (10 * 50 + 50);
        assert!(requests <= most, "seed {seed}: {requests} requests in ten seconds, for {hints} hints");
        assert!(requests >= 500, "seed {seed}: {requests} requests: hints among them are followed");
    }
}

/// Everything goes wrong: with hints that are lost, doubled, late, and forged.
#[test]
fn many_seeds_with_hints_find_nothing_wrong() {
    type Make = fn() -> Setting<'static>;
    let rows: [(&str, Make); 2] = [
        ("engine, told of its turn", Setting::default),
        ("engine, told of its turn, --expiry observed", || Setting::default().observed()),
    ];
    for (what, setting) in rows {
        support::none_fails(what, |seed| {
            let seed = 7_000_000 + seed;
            let wrong = run(seed, &Setting { notify: true, ..setting() }).wrong;
            (!wrong.is_empty()).then(|| format!("seed {seed}: {}", wrong.join("; ")))
        });
    }
}
