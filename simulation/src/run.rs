//! One run: clients at a cluster in trouble, then without trouble, then nobody; and what was wrong.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use clap::ValueEnum;
use ylock_core::Key;
use ylock_core::engine::Engine;
use ylock_core::environment::Environment;
use ylock_engine_cassandra::algorithm::clock::TimeCell;
use ylock_engine_cassandra::algorithm::store::Store;
use ylock_engine_cassandra::options::{Clock, Protocol};
use ylock_engine_cassandra::{CassandraEngine, CassandraOptions};

use crate::chance::Chance;
use crate::client::{Client, Stage};
use crate::clocks::Clocks;
use crate::faults::{Fault, Plan};
use crate::oracle::Oracle;
use crate::places::Places;
use crate::store::{Cluster, Connection};
use crate::world::{Actor, World, lock};

const LEASE: Duration = Duration::from_secs(5);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(1);
const TROUBLE: Duration = Duration::from_secs(60);
/// After the trouble everybody who waits must have got in: at most a few leases for each, one after the other.
const PATIENCE: Duration = Duration::from_secs(300);
/// The longest that anything lives that was sent: the slowest message, then lease, rounding and clock skew, and what clocks may be
/// wrong by.
const FORGOTTEN: Duration = Duration::from_secs(2 * 21 + 5 + 1 + 2 + 3);

/// Makes a client's engine from its connection and clocks. The broken variants of the tests make others.
pub type MakeEngine = dyn Fn(Arc<Connection>, &Arc<Clocks>, &CassandraOptions) -> Arc<dyn Engine>;

/// What may happen in a run.
pub struct Setting<'a> {
    /// The kinds of trouble.
    pub allowed: Vec<Fault>,
    /// Whether to keep the trace as text.
    pub lines: bool,
    /// Whether clients believe a renewal also when their lease had lapsed before: what the keeper never does.
    pub trusting: bool,
    /// What the clients run.
    pub protocol: Protocol,
    /// Where the clients take their places from.
    pub clock: Clock,
    /// How a client is made.
    pub make: &'a MakeEngine,
}

/// What came out.
#[derive(Debug)]
pub struct Outcome {
    /// What was wrong; nothing if all is well.
    pub wrong: Vec<String>,
    /// How often somebody entered.
    pub entries: u64,
    /// Of those who queued and entered, how many went before somebody who was in the queue when they began; and of how many.
    pub inversions: (u64, u64),
    /// Virtual time.
    pub time: Duration,
    /// Of everything that happened.
    pub hash: u64,
    /// The trace, if it was kept.
    pub lines: Vec<String>,
}

impl Default for Setting<'_> {
    fn default() -> Self {
        Self {
            allowed: Fault::value_variants().to_vec(),
            lines: false,
            trusting: false,
            protocol: Protocol::Queue,
            clock: Clock::Hlc,
            make: &real_engine,
        }
    }
}

impl std::fmt::Debug for Setting<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Setting").field("allowed", &self.allowed).finish_non_exhaustive()
    }
}

/// The engine as it is.
pub fn real_engine(
    connection: Arc<Connection>,
    clocks: &Arc<Clocks>,
    options: &CassandraOptions,
) -> Arc<dyn Engine> {
    let environment: Arc<dyn Environment> = Arc::clone(clocks) as _;
    let engine = CassandraEngine::over(Arc::clone(&connection) as Arc<dyn Store>, environment, options);
    Arc::new(match options.clock() {
        Clock::GlobalTime => engine.with_global_time(connection as Arc<dyn TimeCell>),
        _ => engine,
    })
}

/// Runs one seed.
pub fn run(seed: u64, setting: &Setting<'_>) -> Outcome {
    let scene = Scene::new(seed, setting);
    scene.play();
    Outcome {
        wrong: scene.stage.oracle.wrong(),
        entries: scene.stage.oracle.entries(),
        inversions: scene.stage.places.inversions(),
        time: Duration::from_nanos(scene.world.now()),
        hash: scene.world.hash(),
        lines: scene.world.lines(),
    }
}

struct Scene<'a> {
    setting: &'a Setting<'a>,
    world: Arc<World>,
    cluster: Arc<Cluster>,
    stage: Arc<Stage>,
    plan: Plan,
    chance: std::sync::Mutex<Chance>,
    processes: std::sync::Mutex<Vec<Process>>,
    options: CassandraOptions,
}

/// One run of a client process.
struct Process {
    actor: Actor,
    clocks: Arc<Clocks>,
    engine: Arc<dyn Engine>,
}

impl<'a> Scene<'a> {
    fn new(seed: u64, setting: &'a Setting<'a>) -> Self {
        let mut chance = Chance::new(seed);
        let plan = Plan::new(&setting.allowed, &mut chance);
        let world = World::new(setting.lines);
        world.note(|| format!("seed {seed}: {plan:?}"));
        let weather = plan.weather(&mut chance);
        let cluster = Cluster::new(&world, weather, plan.node_clocks(&mut chance), chance.fork());
        let keys = (0..=chance.below(2))
            .filter_map(|number| Key::new("group", format!("name-{number}")).ok())
            .collect();
        let oracle = Oracle::new(&world);
        // A clock that steps is more than the largest lead away from others, and the old algorithm has no queue.
        let is_ordered = setting.protocol == Protocol::Queue && setting.clock == Clock::Hlc;
        let stage = Arc::new(Stage {
            places: Places::new(&world, &oracle, LEASE, is_ordered && !plan.has(Fault::Step)),
            oracle,
            keys,
            lease: LEASE,
            trusting: setting.trusting,
            is_over: AtomicBool::new(false),
            busy: AtomicUsize::new(0),
        });
        let options = CassandraOptions::new("simulated")
            .with_host("simulated", 9042)
            .with_lease(LEASE)
            .with_request_timeout(REQUEST_TIMEOUT)
            .with_protocol(setting.protocol)
            .with_clock(setting.clock);
        let (chance, processes) = (chance.into(), std::sync::Mutex::default());
        Self { setting, world, cluster, stage, plan, chance, processes, options }
    }

    fn play(&self) {
        for _ in 0..2 + self.chance(|chance| chance.below(4)) {
            self.start_process();
        }
        self.trouble();
        self.cluster.calm_down();
        self.world.note(|| "the trouble is over".to_owned());
        self.stage.is_over.store(true, Ordering::Relaxed);
        let until = self.later(PATIENCE);
        if !self.world.run(until, || self.stage.busy.load(Ordering::Relaxed) == 0) {
            let busy = self.stage.busy.load(Ordering::Relaxed);
            return self.stage.oracle.complain(format!("{busy} still wait {PATIENCE:?} after the trouble"));
        }
        self.close();
    }

    /// One client process, with one task at each of its locks at a time.
    fn start_process(&self) {
        let actor = self.world.new_actor();
        let (rate, wall) = self.chance(|chance| self.plan.client_clock(chance));
        let clocks = Clocks::new(&self.world, actor, rate, wall, self.chance(Chance::fork));
        let connection = Connection::new(&self.world, &self.cluster, &clocks, REQUEST_TIMEOUT)
            .watched_by(&self.stage.places);
        let engine = (self.setting.make)(Arc::new(connection), &clocks, &self.options);
        let client = Client {
            stage: Arc::clone(&self.stage),
            engine: Arc::clone(&engine),
            clocks: Arc::clone(&clocks),
            chance: self.chance(Chance::fork),
        };
        self.world.note(|| format!("{actor:?} starts"));
        self.world.spawn(actor, Box::pin(client.live()));
        lock(&self.processes).push(Process { actor, clocks, engine });
    }

    /// Lets things go wrong for a while.
    fn trouble(&self) {
        let end = self.later(TROUBLE);
        while self.world.now() < end {
            let pause =
                self.chance(|chance| chance.between(Duration::from_millis(100), Duration::from_secs(6)));
            let until = self.later(pause).min(end);
            self.world.run(until, || false);
            self.something_happens();
        }
    }

    fn something_happens(&self) {
        use Fault::{Crash, Down, Pause, StandStill, Step};
        let kinds = [Crash, Down, Pause, StandStill, Step];
        let kind = kinds[self.chance(|chance| chance.below(kinds.len() as u64)) as usize];
        let (whom, time) =
            self.chance(|chance| (chance.number() as usize, chance.between(Duration::ZERO, LEASE * 3)));
        if !self.plan.has(kind) {
            return;
        }
        if kind == Down {
            return self.node_fails(whom % 3, time);
        }
        let (actor, clocks) = {
            let processes = lock(&self.processes);
            let process = &processes[whom % processes.len()];
            (process.actor, Arc::clone(&process.clocks))
        };
        self.world.note(|| format!("{kind:?} of {actor:?} for {time:?}"));
        match kind {
            Crash => {
                self.world.kill(actor);
                lock(&self.processes).retain(|process| process.actor != actor);
                self.start_process();
            }
            StandStill => {
                clocks.stand_still(time);
                self.world.pause(actor, time);
            }
            Step => clocks.step(self.chance(|chance| chance.around_zero(600_000_000))),
            _ => self.world.pause(actor, time),
        }
    }

    fn node_fails(&self, number: usize, time: Duration) {
        self.cluster.stop(number);
        let cluster = Arc::clone(&self.cluster);
        self.world.after(time, move || cluster.start(number));
    }

    /// Everybody goes home; then nothing must be left in the store but tokens.
    fn close(&self) {
        let open = Arc::new(AtomicUsize::new(0));
        for process in lock(&self.processes).iter() {
            open.fetch_add(1, Ordering::Relaxed);
            let (engine, open) = (Arc::clone(&process.engine), Arc::clone(&open));
            self.world.spawn(
                process.actor,
                Box::pin(async move {
                    drop(engine.close().await);
                    open.fetch_sub(1, Ordering::Relaxed);
                }),
            );
        }
        if !self.world.run(self.later(PATIENCE), || open.load(Ordering::Relaxed) == 0) {
            return self.stage.oracle.complain("a client cannot be closed".to_owned());
        }
        self.world.run(self.later(FORGOTTEN), || false);
        for key in &self.stage.keys {
            match self.cluster.truth(key) {
                Ok(look) if look.rows.iter().all(|seen| seen.row.is_none()) => {}
                left => self.stage.oracle.complain(format!("left in the store: {left:?}")),
            }
        }
    }

    fn later(&self, time: Duration) -> u64 {
        self.world.now() + u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
    }

    fn chance<T>(&self, draw: impl FnOnce(&mut Chance) -> T) -> T {
        draw(&mut lock(&self.chance))
    }
}
