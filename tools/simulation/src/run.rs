//! One run: clients at a cluster in trouble, then without trouble, then no clients; and what was wrong.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use ylock_core::Key;
use ylock_engine_cassandra::CassandraOptions;
use ylock_engine_cassandra::options::{Clock, Expiry, Protocol};

use crate::backend::{Backend, Subject};
use crate::chance::Chance;
use crate::client::{Client, SharedState};
use crate::clocks::Clocks;
use crate::etcd;
use crate::facade::{self, Built, Sets};
use crate::faults::{Fault, Plan};
use crate::led::Led;
use crate::memory::Server;
use crate::newcomer;
use crate::oracle::Oracle;
use crate::places::Places;
use crate::process::{self, Process, Program};
use crate::redis;
use crate::setting::{Outcome, Setting};
use crate::store::{Change, Cluster, HintWeather};
use crate::world::{Actor, World};
use crate::zookeeper::Ensemble;

/// The number of times that one process may connect: at first, and anew.
const CONNECTIONS: usize = 3;
const LONGEST_PAUSE: Duration = Duration::from_secs(15);
/// The node that forgets, if one does.
const FORGETFUL: usize = 0;
/// The longest time by which a coordinator hears of a new node later than another one.
const GOSSIP: Duration = Duration::from_secs(20);
const TROUBLE: Duration = Duration::from_secs(60);
/// The time after the trouble within which every waiter must have got in: at most a few leases for each, one after the other.
const PATIENCE: Duration = Duration::from_secs(300);
/// The longest time for which anything lives that was sent, without the lease: the slowest message, then rounding and clock skew, and
/// what clocks may be wrong by.
const FORGOTTEN: Duration = Duration::from_secs(2 * 21 + 1 + 2 + 3);

/// What a client needs to get in beside the lease for which it watches what is left of dead ones: pauses and requests.
const A_WAY_IN: Duration = Duration::from_secs(5);
/// The skews of the servers' clocks that clients which observe each other are told, and that servers then have.
const SKEWS: [u64; 3] = [60, 3_600, 2 * YEAR];
const YEAR: u64 = 365 * 24 * 60 * 60;

/// Returns the options of the cluster's clients.
fn options(setting: &Setting<'_>, chance: &mut Chance) -> CassandraOptions {
    let options = CassandraOptions::new("simulated")
        .with_host("simulated", 9042)
        .with_lease(setting.leases[0])
        .with_request_timeout(setting.request_timeout())
        .with_protocol(setting.protocol)
        .with_clock(setting.clock)
        .with_expiry(setting.expiry);
    if setting.expiry == Expiry::Ttl {
        return options;
    }
    let skew = SKEWS[chance.below(SKEWS.len() as u64) as usize];
    options.with_max_clock_skew(Duration::from_secs(skew)).with_token_ttl(Duration::from_secs(5 * YEAR))
}

/// Runs one seed.
pub fn run(seed: u64, setting: &Setting<'_>) -> Outcome {
    let scene = Scene::new(seed, setting);
    scene.play();
    let steps = scene.world.steps();
    if steps >= World::MOST_STEPS {
        scene.shared.oracle.complain(format!("a client asks again and again: {steps} steps"));
    }
    let (wrong, burials) = scene.backend.burials();
    let outcome = Outcome {
        wrong: [scene.shared.oracle.wrong(), wrong].concat(),
        burials,
        entries: scene.shared.oracle.entries(),
        inversions: scene.shared.places.inversions(),
        time: Duration::from_nanos(scene.world.now()),
        steps,
        hash: scene.world.hash(),
        lines: scene.world.lines(),
    };
    scene.forget();
    outcome
}

struct Scene<'a> {
    setting: &'a Setting<'a>,
    /// The most by which the clocks of two nodes of the cluster differ.
    max_clock_skew: Duration,
    world: Arc<World>,
    backend: Backend,
    shared: Arc<SharedState>,
    plan: Plan,
    chance: parking_lot::Mutex<Chance>,
    processes: parking_lot::Mutex<Vec<Process>>,
    options: CassandraOptions,
}

impl<'a> Scene<'a> {
    fn new(seed: u64, setting: &'a Setting<'a>) -> Self {
        let mut chance = Chance::new(seed);
        let is_possible = |fault: &Fault| {
            // A new cluster has forgotten which jobs were run.
            setting.of.knows(*fault) && (*fault != Fault::Anew || setting.built == Built::None)
        };
        let allowed: Vec<_> = setting.allowed.iter().copied().filter(is_possible).collect();
        let plan = Plan::new(&allowed, &mut chance);
        let world = World::new(setting.lines);
        world.note(|| format!("seed {seed}: {plan:?}"));
        let weather = plan.weather(&mut chance);
        let options = options(setting, &mut chance);
        let max_clock_skew = options.max_clock_skew();
        let node_clocks = plan.node_clocks(setting.replicas, max_clock_skew, &mut chance);
        let fate = chance.fork();
        let backend = match setting.of {
            Subject::KeeperOverMemory | Subject::KeeperAtOnce => Backend::Memory(Server::new(&world, fate)),
            Subject::Engine | Subject::KeeperOverCassandra => {
                let cluster = Cluster::new(&world, weather, &node_clocks, fate);
                if setting.notify {
                    let weather = HintWeather::any(&mut chance);
                    world.note(|| format!("{weather:?}"));
                    cluster.network.begin(weather, chance.fork());
                }
                Backend::Cluster(cluster)
            }
            Subject::ZookeeperEngine | Subject::KeeperOverZookeeper => {
                let session = setting.zookeeper_options().session();
                let rules = plan.ensemble(setting.replicas, session, &mut chance);
                Backend::Ensemble(Ensemble::new(&world, rules, weather, fate))
            }
            Subject::EtcdEngine | Subject::KeeperOverEtcd => {
                let rules = plan.etcd(setting.replicas, &mut chance);
                Backend::Etcd(etcd::Cluster::new(&world, rules, weather, fate))
            }
            Subject::RedisEngine | Subject::KeeperOverRedis => {
                let (rate, mistake) = (plan.server_clock(&mut chance), setting.script_mistake);
                let has_replica = plan.has(Fault::FailOver);
                let server = redis::Server::start(&world, weather, rate, fate, mistake, has_replica);
                Backend::Redis(redis::Servers::one(&world, server))
            }
            Subject::RedisCluster | Subject::KeeperOverRedisCluster => {
                let mut server = || {
                    let (fate, mistake) = (chance.fork(), setting.script_mistake);
                    let server = redis::Server::start(&world, weather.clone(), 1.0, fate, mistake, false);
                    // Any two are less than a twenty-fifth of a lease apart: less than a tenth, with the drift of a client.
                    let part = if plan.has(Fault::Apart) { 1 } else { 50 };
                    let most = i64::try_from(setting.shortest_lease().as_micros()).unwrap_or(i64::MAX) / part;
                    server.set_forward(chance.around_zero(most));
                    server
                };
                let servers = (0..setting.replicas).map(|_| server()).collect();
                Backend::Redis(redis::Servers::cluster(&world, servers, fate))
            }
        };
        // Where several are taken at once there are enough for that.
        let last = if setting.sets == Sets::None { chance.below(2) } else { 1 + chance.below(3) };
        let keys = (0..=last).filter_map(|number| Key::new("group", format!("name-{number}")).ok()).collect();
        let oracle = Oracle::new(&world, setting.of.has_tokens());
        // A clock that steps is more than the largest lead away from others, and the old algorithm has no queue.
        let is_ordered = setting.protocol == Protocol::Queue && setting.clock == Clock::Hlc;
        let is_ordered = is_ordered && !plan.has(Fault::Step);
        let places = Places::new(&world, &oracle, setting.shortest_life(), is_ordered);
        // On Cassandra the order is that of hybrid clocks: a client whose clock has followed a fast one takes a place behind clients whose clocks have
        // not.
        let places = places.without_trouble(plan.is_without_trouble() && !setting.of.is_of_cassandra());
        let shared = Arc::new(SharedState {
            // Where rows are observed, idle ones do not outlive the skew of the nodes' clocks.
            places: Arc::new(match setting.expiry {
                Expiry::Observed => places.without_idle_rows(),
                _ => places,
            }),
            oracle,
            keys,
            lease: setting.leases[0],
            leases: setting.leases.clone(),
            trusting: setting.trusting,
            tries: setting.tries as f64 / 100.0,
            strict: setting.strict,
            sets: setting.sets,
            built: setting.built,
            is_over: AtomicBool::new(false),
            is_calm: AtomicBool::new(false),
            busy: AtomicUsize::new(0),
        });
        let (chance, processes) = (chance.into(), parking_lot::Mutex::default());
        Self { setting, max_clock_skew, world, backend, shared, plan, chance, processes, options }
    }

    fn play(&self) {
        for _ in 0..2 + self.chance(|chance| chance.below(4)) {
            self.start_process();
        }
        self.trouble();
        self.backend.calm_down();
        self.world.note(|| "the trouble is over".to_owned());
        self.shared.is_over.store(true, Ordering::Relaxed);
        let shared = Arc::clone(&self.shared);
        let calm = LONGEST_PAUSE + self.setting.longest_lease() * 2;
        self.world.after(calm, move || shared.is_calm.store(true, Ordering::Relaxed));
        let until = self.later(PATIENCE);
        if !self.world.run(until, || self.shared.busy.load(Ordering::Relaxed) == 0) {
            let busy = self.shared.busy.load(Ordering::Relaxed);
            self.world.note(|| format!("in the store: {:#?}", self.backend.left(&self.shared.keys)));
            return self.shared.oracle.complain(format!("{busy} still wait {PATIENCE:?} after the trouble"));
        }
        self.close();
    }

    /// Starts one client process.
    fn start_process(&self) {
        let actor = self.world.new_actor();
        let (rate, wall) = self.chance(|chance| self.plan.client_clock(self.setting.drift, chance));
        let clocks = Clocks::new(&self.world, actor, rate, wall, self.chance(Chance::fork));
        let program = match self.setting.of.is_above_the_keeper() {
            false => self.start_client(&clocks),
            true => self.start_facade(&clocks),
        };
        self.world.note(|| format!("{actor:?} starts"));
        self.processes.lock().push(Process { actor, clocks, program });
    }

    fn start_client(&self, clocks: &Arc<Clocks>) -> Program {
        let places = Some(&self.shared.places);
        let engine = self.backend.connect(&self.world, clocks, self.setting, &self.options, places);
        let client = Client {
            shared: Arc::clone(&self.shared),
            engine: Arc::clone(&engine),
            clocks: Arc::clone(clocks),
            chance: self.chance(Chance::fork),
        };
        clocks.spawn_of_program(Box::pin(client.live()));
        Program::Engine(engine)
    }

    fn start_facade(&self, clocks: &Arc<Clocks>) -> Program {
        // A keeper looks at a lock for several tasks at once, and not every look is one that a place is taken from.
        let connect = || self.backend.connect(&self.world, clocks, self.setting, &self.options, None);
        let engines = (0..CONNECTIONS).map(|_| connect()).collect();
        let chance = self.chance(Chance::fork);
        Program::Facade(facade::Process::start(&self.shared, clocks, self.setting.of, engines, chance))
    }

    /// Lets a node take the place of another one, at any time of the trouble.
    fn change_ring(&self) {
        let Backend::Cluster(cluster) = &self.backend else { return };
        let lag = if self.plan.has(Fault::Gossip) { GOSSIP } else { Duration::ZERO };
        if !self.plan.has(Fault::Join) && lag.is_zero() {
            return;
        }
        let clock = self.any_node_clock();
        let (leaves, is_dead, time) = self.chance(|chance| {
            let node = chance.below(self.setting.replicas as u64) as usize;
            // The only copy of the data must not die.
            let is_dead = chance.happens(0.5) && self.setting.replicas > 1;
            (node, is_dead, chance.between(Duration::ZERO, TROUBLE))
        });
        let (cluster, change) = (Arc::clone(cluster), Change { leaves, is_dead, lag, clock_offset: clock });
        self.world.after(time, move || {
            cluster.change_ring(change);
        });
    }

    /// Lets things go wrong for a while.
    fn trouble(&self) {
        self.change_ring();
        let end = self.later(TROUBLE);
        while self.world.now() < end {
            let pause =
                self.chance(|chance| chance.between(Duration::from_millis(100), Duration::from_secs(6)));
            let until = self.later(pause).min(end);
            self.world.run(until, || false);
            self.no_key_is_forgotten();
            self.something_happens();
            self.node_clock_steps();
        }
    }

    /// Complains of each client that runs and has more keys on a cluster of etcd than it knows of: others wait for such a key until its lease ends.
    fn no_key_is_forgotten(&self) {
        // From a backup come keys of locks that were given back since.
        let Backend::Etcd(cluster) = &self.backend else { return };
        if self.plan.has(Fault::Anew) || self.plan.has(Fault::Forget) {
            return;
        }
        for process in self.processes.lock().iter() {
            let Some(known) = process.program.claims() else { continue };
            let kept = cluster.kept_by(process::name_of(process.actor).as_str());
            if kept > known {
                let actor = process.actor;
                self.shared
                    .oracle
                    .complain(format!("{actor:?} has {kept} keys in the store and knows of {known}"));
            }
        }
    }

    fn something_happens(&self) {
        use Fault::{
            Anew, Crash, Cut, Down, Election, FailOver, Forget, Pause, Reshard, Runtime, SetBack, SetForward,
            StandStill, Step,
        };
        let kinds = match &self.backend {
            Backend::Cluster(_) | Backend::Memory(_) => &[Crash, Down, Pause, StandStill, Step][..],
            Backend::Ensemble(_) => &[Crash, Down, Pause, StandStill, Step, Cut, Election, Runtime],
            Backend::Etcd(_) => &[Crash, Down, Pause, StandStill, Step, Cut, Election, Runtime, Anew, Forget],
            Backend::Redis(_) if self.setting.of.is_redis_cluster() => {
                &[Crash, Down, Pause, StandStill, Step, Reshard]
            }
            Backend::Redis(_) => {
                &[Crash, Down, Pause, StandStill, Step, SetBack, SetForward, FailOver, Forget]
            }
        };
        let kind = kinds[self.chance(|chance| chance.below(kinds.len() as u64)) as usize];
        let (whom, time) =
            self.chance(|chance| (chance.number() as usize, chance.between(Duration::ZERO, LONGEST_PAUSE)));
        let time = self.about_a_session().unwrap_or(time);
        match &self.backend {
            Backend::Etcd(cluster) if matches!(kind, Anew | Forget) => {
                return self.cluster_is_set_up_anew(cluster, kind);
            }
            Backend::Ensemble(_) | Backend::Etcd(_) if matches!(kind, Down | Cut | Election) => {
                return self.server_fails(kind, whom % self.setting.replicas, time);
            }
            Backend::Redis(servers) if kind == Reshard => return self.slot_moves(servers, whom),
            Backend::Redis(servers) if matches!(kind, Down | SetBack | SetForward | FailOver | Forget) => {
                return self.redis_fails(servers.any(whom), kind, time);
            }
            _ if kind == Down => return self.node_fails(whom % self.setting.replicas, time),
            _ => {}
        }
        if !self.plan.has(kind) {
            return;
        }
        let (actor, clocks) = {
            let processes = self.processes.lock();
            let process = &processes[whom % processes.len()];
            (process.actor, Arc::clone(&process.clocks))
        };
        // Half of the times the client's own thread goes on. An engine by itself promises nothing then. Drawn from what is drawn already,
        // so that a seed of an engine stays what it was.
        let stands_still = self.setting.of.is_above_the_keeper() && whom >> 32 & 1 == 0;
        let whole = if stands_still && kind == Pause { ", of its runtime" } else { "" };
        self.world.note(|| format!("{kind:?} of {actor:?} for {time:?}{whole}"));
        match kind {
            Crash => {
                self.world.kill(actor);
                self.processes.lock().retain(|process| process.actor != actor);
                self.start_process();
            }
            StandStill => {
                clocks.stand_still(time);
                self.world.pause(actor, time);
            }
            Runtime => self.runtime_ends(actor, time),
            Pause if stands_still => self.world.stand_still(actor, time),
            Step => clocks.step(self.chance(|chance| chance.around_zero(600_000_000))),
            _ => self.world.pause(actor, time),
        }
    }

    /// Steps the clock of a node, where clients observe each other: now and then.
    fn node_clock_steps(&self) {
        let Backend::Cluster(cluster) = &self.backend else { return };
        if self.setting.expiry == Expiry::Observed && self.chance(|chance| chance.happens(0.2)) {
            let number = self.chance(|chance| chance.below(self.setting.replicas as u64)) as usize;
            cluster.set_clock(number, self.any_node_clock());
        }
    }

    fn any_node_clock(&self) -> i64 {
        self.chance(|chance| self.plan.node_clocks(1, self.max_clock_skew, chance)[0])
    }

    /// Takes a node down for a while. The node that forgets fails also where no other does.
    fn node_fails(&self, number: usize, time: Duration) {
        let Backend::Cluster(cluster) = &self.backend else { return };
        let number = if self.plan.has(Fault::Down) { number } else { FORGETFUL };
        if number == FORGETFUL && self.plan.has(Fault::Forget) {
            cluster.crash(number);
        } else if self.plan.has(Fault::Down) {
            cluster.stop(number);
        } else {
            return;
        }
        let cluster = Arc::clone(cluster);
        self.world.after(time, move || cluster.start(number));
    }

    /// Returns a time about as long as a session lives without a sign of life, half of the times: where most can go wrong.
    fn about_a_session(&self) -> Option<Duration> {
        let session = match self.backend {
            Backend::Ensemble(_) => self.setting.zookeeper_options().session(),
            // The time to live of the etcd lease.
            Backend::Etcd(_) => self.setting.leases[0] * 6 / 5,
            Backend::Cluster(_) | Backend::Memory(_) | Backend::Redis(_) => return None,
        };
        self.chance(|chance| {
            let time = chance.between(session * 3 / 4, session * 5 / 4);
            chance.happens(0.5).then_some(time)
        })
    }

    /// Takes one of the servers of which one leads down for a while, or cuts it off from the others, half of the times the leader; or deposes the
    /// leader.
    fn server_fails(&self, kind: Fault, any: usize, time: Duration) {
        let Some(servers) = self.backend.led().filter(|_| self.plan.has(kind)) else { return };
        let (is_leader, is_noticed) = self.chance(|chance| (chance.happens(0.5), chance.happens(0.5)));
        let server = Arc::clone(&servers).leader().filter(|_| is_leader).unwrap_or(any);
        let again = Arc::clone(&servers);
        match kind {
            Fault::Down => {
                servers.stop(server, is_noticed);
                self.world.after(time, move || again.start(server));
            }
            Fault::Cut => {
                // Only a member of etcd stops: so the seeds of ensembles stay what they are.
                let is_etcd = matches!(self.backend, Backend::Etcd(_));
                let stops = is_etcd && self.chance(|chance| chance.happens(0.5));
                if stops {
                    servers.suspend(server, is_noticed);
                    self.neighbour_stops(Arc::clone(&again), any, time);
                } else {
                    servers.cut(server, is_noticed);
                }
                self.world.after(time, move || again.heal(server));
            }
            _ => servers.depose(),
        }
    }

    /// Stops another member at the same time, half of the times, where a majority is left: the two have one machine.
    fn neighbour_stops(&self, servers: Arc<dyn Led>, neighbour: usize, time: Duration) {
        if self.setting.replicas < 5 || self.chance(|chance| chance.happens(0.5)) {
            return;
        }
        Arc::clone(&servers).suspend(neighbour, false);
        self.world.after(time, move || servers.heal(neighbour));
    }

    /// Sets a cluster of etcd up anew: when all that clients may rely on is over, or at once.
    fn cluster_is_set_up_anew(&self, cluster: &Arc<etcd::Cluster>, kind: Fault) {
        if !self.plan.has(kind) {
            return;
        }
        // The locks of sets have the lease that a client gives by itself.
        let of_sets = (self.setting.sets != Sets::None).then(|| ylock_core::Options::default().lease());
        let longest = self.setting.longest_lease().max(of_sets.unwrap_or_default());
        let time = if kind == Fault::Anew { longest * 6 / 5 } else { Duration::ZERO };
        cluster.set_up_anew(time + self.chance(|chance| chance.between(Duration::ZERO, longest / 5)));
    }

    fn slot_moves(&self, servers: &Arc<redis::Servers>, any: usize) {
        if self.plan.has(Fault::Reshard) {
            servers.move_slot(&self.shared.keys[any % self.shared.keys.len()]);
        }
    }

    /// Lets something happen to a Redis server.
    fn redis_fails(&self, server: &Arc<redis::Server>, kind: Fault, time: Duration) {
        if !self.plan.has(kind) {
            return;
        }
        let (server, lease) = (Arc::clone(server), self.setting.longest_lease());
        let (hangs, micros) =
            self.chance(|chance| (chance.happens(0.5), chance.between(lease, lease * 3).as_micros()));
        self.world.note(|| format!("{kind:?} of the server for {time:?}"));
        match kind {
            Fault::SetBack => server.set_back(),
            Fault::SetForward => server.set_forward(i64::try_from(micros).unwrap_or(0)),
            Fault::FailOver => server.fail_over(),
            Fault::Forget => {
                server.stop();
                self.world.after(time, move || server.restart_empty());
            }
            _ if hangs => {
                server.hang();
                self.world.after(time, move || server.resume());
            }
            _ => {
                server.stop();
                self.world.after(time, move || server.restart());
            }
        }
    }

    /// Ends what a client has in the runtime of its program, and lets that run nothing for a while.
    fn runtime_ends(&self, actor: Actor, time: Duration) {
        if let Some(servers) = self.backend.led() {
            servers.end_runtimes(actor);
        }
        if self.setting.of.is_above_the_keeper() {
            self.world.stand_still(actor, time);
        }
    }

    /// Closes all clients; then nothing must be left in the store but tokens.
    fn close(&self) {
        let open = Arc::new(AtomicUsize::new(0));
        for process in self.processes.lock().iter() {
            open.fetch_add(1, Ordering::Relaxed);
            let (closing, open) = (process.program.clone().close(), Arc::clone(&open));
            self.world.spawn(
                process.actor,
                Box::pin(async move {
                    closing.await;
                    open.fetch_sub(1, Ordering::Relaxed);
                }),
            );
        }
        if !self.world.run(self.later(PATIENCE), || open.load(Ordering::Relaxed) == 0) {
            return self.shared.oracle.complain("a client cannot be closed".to_owned());
        }
        self.world.run(self.later(FORGOTTEN + self.setting.longest_lease()), || false);
        if self.setting.expiry == Expiry::Observed {
            return self.newcomer();
        }
        let built = (self.setting.built != Built::None).then(facade::built_keys);
        let keys: Vec<_> = self.shared.keys.iter().cloned().chain(built.into_iter().flatten()).collect();
        for left in self.backend.left(&keys) {
            self.shared.oracle.complain(format!("left in the store: {left}"));
        }
        let left: usize = self.processes.lock().iter().map(|process| process.program.keys_in_use()).sum();
        if left > 0 {
            self.shared.oracle.complain(format!("{left} keys are left in clients"));
        }
    }

    /// Lets a client come. What is left of dead clients may stand in its way, but for no more than a lease.
    fn newcomer(&self) {
        // Copies of old writes may be on their way for three minutes.
        self.world.run(self.later(Duration::from_secs(180)), || false);
        let actor = self.world.new_actor();
        let clocks = Clocks::new(&self.world, actor, 1.0, 0, self.chance(Chance::fork));
        let engine = self.backend.connect(&self.world, &clocks, self.setting, &self.options, None);
        let (keys, got) = (self.shared.keys.clone(), Arc::new(AtomicUsize::new(0)));
        let (all, lease) = (keys.len(), self.setting.longest_lease());
        let visit = newcomer::visit(engine, clocks, keys, lease, Arc::clone(&got));
        self.world.spawn(actor, Box::pin(visit));
        let most = (lease + A_WAY_IN) * u32::try_from(all).unwrap_or(u32::MAX);
        if !self.world.run(self.later(most), || got.load(Ordering::Relaxed) == all) {
            let got = got.load(Ordering::Relaxed);
            self.shared.oracle.complain(format!("a newcomer got {got} of {all} locks within {most:?}"));
        }
    }

    /// Drops what still runs or would still happen: both know the world that has them, so none of them would ever be freed.
    fn forget(&self) {
        for process in self.processes.lock().drain(..) {
            self.world.kill(process.actor);
        }
        self.world.end();
    }

    fn later(&self, time: Duration) -> u64 {
        self.world.now() + u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
    }

    fn chance<T>(&self, draw: impl FnOnce(&mut Chance) -> T) -> T {
        draw(&mut self.chance.lock())
    }
}
