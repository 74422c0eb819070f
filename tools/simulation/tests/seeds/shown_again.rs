//! A node that was away, and missed how a lock was given back, comes back when the others have thrown away what it missed.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use ylock_core::engine::{AcquisitionId, Engine, Patience, Request};
use ylock_core::{ClientName, Key, Mode, Owner};
use ylock_engine_cassandra::CassandraOptions;
use ylock_engine_cassandra::options::Expiry;
use ylock_simulation::chance::Chance;
use ylock_simulation::clocks::Clocks;
use ylock_simulation::setting::real_engine;
use ylock_simulation::store::{Cluster, Connection, Weather};
use ylock_simulation::world::{Actor, World};

const NODES: u64 = 3;
const SEEDS: u64 = 600;
/// Longer than any row is shown.
const LONGEST_AWAY: Duration = Duration::from_secs(250);

struct Scene {
    world: Arc<World>,
    cluster: Arc<Cluster>,
    chance: Chance,
    options: CassandraOptions,
}

impl Scene {
    /// Three nodes whose clocks are as wrong as they may be, and which keep nothing for each other.
    fn new(seed: u64, options: &CassandraOptions) -> Self {
        let world = World::new(false);
        let weather =
            Weather { hints: false, ..Weather::calm((Duration::from_millis(1), Duration::from_millis(3))) };
        let mut chance = Chance::new(seed);
        let most = i64::try_from(options.max_clock_skew().as_micros()).unwrap() / 2;
        let clocks: Vec<_> = (0..NODES).map(|_| if chance.happens(0.5) { most } else { -most }).collect();
        let cluster = Cluster::new(&world, weather, &clocks, chance.fork());
        cluster.set_gc_grace(options.gc_grace());
        Self { world, cluster, chance, options: options.clone() }
    }

    fn client(&mut self) -> Client {
        let actor = self.world.new_actor();
        let clocks = Clocks::new(&self.world, actor, 1.0, 0, self.chance.fork());
        let connection = Connection::new(&self.world, &self.cluster, &clocks, Duration::from_secs(2));
        let engine = real_engine(Arc::new(connection), &clocks, &self.options);
        Client { actor, clocks, engine, lease: self.options.lease() }
    }

    /// Runs what a client does, to its end.
    fn run<T: Send + 'static>(&self, actor: Actor, does: impl Future<Output = T> + Send + 'static) -> T {
        let answer = Arc::new(Mutex::new(None));
        let done = Arc::clone(&answer);
        self.world.spawn(actor, Box::pin(async move { *done.lock() = Some(does.await) }));
        let until = self.world.now() + 3_600_000_000_000;
        assert!(self.world.run(until, || answer.lock().is_some()), "not within an hour");
        let answer = answer.lock().take();
        answer.unwrap()
    }

    fn pass(&self, time: Duration) {
        self.world.run(self.world.now() + u64::try_from(time.as_nanos()).unwrap(), || false);
    }

    /// A lock is held, and given back while a node is away. Returns whether a client gets it at once that meets this node when it is back.
    fn is_free_after(&mut self, end: End) -> bool {
        let holder = self.client();
        let request = holder.request();
        let (engine, held) = (Arc::clone(&holder.engine), request.clone());
        self.run(holder.actor, async move { engine.acquire(&held).await.unwrap().unwrap() });
        // Every node has what a quorum has acknowledged.
        self.pass(Duration::from_secs(1));
        let away = self.chance.below(NODES) as usize;
        self.cluster.stop(away);
        self.end(&holder, &request, end);
        let time = self.chance.between(Duration::ZERO, LONGEST_AWAY);
        self.pass(time);
        // A node throws away by its own clock when it compacts, which the simulated one does with every write.
        self.visit();
        self.cluster.start(away);
        let other = (away + 1 + self.chance.below(NODES - 1) as usize) % NODES as usize;
        self.cluster.stop(other);
        if matches!(end, End::Death) && self.cluster.heartbeats.burials() == 0 {
            // The row went by its TTL, for a node whose clock is ahead. For one whose clock is behind it is still there.
            return true;
        }
        let newcomer = self.client();
        let actor = newcomer.actor;
        self.run(actor, async move { newcomer.tries().await })
    }

    fn end(&mut self, holder: &Client, request: &Request, end: End) {
        let (engine, held) = (Arc::clone(&holder.engine), request.clone());
        match end {
            End::Release => self.run(holder.actor, async move { leave(&*engine, &held).await }),
            End::Close => self.run(holder.actor, async move {
                leave(&*engine, &held).await;
                while engine.close().await.is_err() {}
            }),
            End::Death => {
                self.world.kill(holder.actor);
                self.visit();
            }
        }
    }

    /// Lets a client get the lock, however long it waits, and give it back.
    fn visit(&mut self) {
        let visitor = self.client();
        let request = visitor.request();
        self.run(visitor.actor, async move {
            // The node that is away may be asked five times in a row.
            while visitor.engine.acquire(&request).await.is_err() {}
            leave(&*visitor.engine, &request).await;
        });
    }
}

/// How a lock becomes free.
#[derive(Clone, Copy, Debug)]
enum End {
    Release,
    Close,
    /// The holder dies, and a waiter buries its row.
    Death,
}

struct Client {
    actor: Actor,
    clocks: Arc<Clocks>,
    engine: Arc<dyn Engine>,
    lease: Duration,
}

impl Client {
    fn request(&self) -> Request {
        let (key, id) = (Key::new("group", "name").unwrap(), AcquisitionId::new(&*self.clocks));
        let owner = Owner::from_bytes(id.as_u128().to_be_bytes());
        Request::new(key, id, Mode::Write, owner, ClientName::default(), self.lease)
    }

    /// Tries once, and again where a node that is away was asked.
    async fn tries(&self) -> bool {
        loop {
            let request = self.request().with_patience(Patience::Try);
            let answer = self.engine.acquire(&request).await;
            leave(&*self.engine, &request).await;
            if let Ok(granted) = answer {
                return granted.is_some();
            }
        }
    }
}

async fn leave(engine: &dyn Engine, request: &Request) {
    while engine.release(&request.key, request.id, None).await.is_err() {}
}

/// Returns how many clients found a lock taken that was free.
fn taken(options: &CassandraOptions, end: End) -> u64 {
    (0..SEEDS).filter(|seed| !Scene::new(*seed, options).is_free_after(end)).count() as u64
}

fn options() -> CassandraOptions {
    CassandraOptions::new("simulated").with_lease(Duration::from_secs(10))
}

/// By default: what superseded a row is kept for as long as any node may show the row.
#[test]
fn a_node_that_comes_back_shows_no_lock_as_held_that_was_given_back() {
    for expiry in [Expiry::Observed, Expiry::Ttl] {
        for end in [End::Release, End::Close, End::Death] {
            assert_eq!(taken(&options().with_expiry(expiry), end), 0, "{expiry}, {end:?}");
        }
    }
}

/// Rows of a minute more, and the grace that was enough for rows of two seconds more.
#[test]
fn with_a_shorter_grace_it_does() {
    for end in [End::Release, End::Close, End::Death] {
        let short = options().with_expiry(Expiry::Observed).with_gc_grace(Duration::from_secs(20));
        assert!(taken(&short, end) > 0, "{end:?}");
    }
    // Each of the three skews counts: that by which the row lives longer, that by which it is shown longer, and that by which what came after
    // is thrown away earlier.
    let less = Duration::from_secs(10 + 1 + 2 * 60);
    let short = options().with_expiry(Expiry::Observed).with_gc_grace(less);
    assert!(taken(&short, End::Release) > 0, "{less:?}");
}
