//! The nodes and the network between them.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use ylock_core::{Key, Result};
use ylock_engine_cassandra::algorithm::store::Partition;

use super::cells::Cells;
use super::heartbeats::Heartbeats;
use super::mutation;
use super::network::Network;
use super::replica::Replica;
use super::ring::Ring;
use crate::chance::Chance;
use crate::world::World;

/// So many locks a page has at most.
const PAGE: usize = 5;

/// The fate of messages.
#[derive(Clone, Debug)]
pub struct Weather {
    /// The shortest and the longest time that a message normally takes.
    pub latency: (Duration, Duration),
    /// The probability that a message is slow, and how slow at most.
    pub slow: (f64, Duration),
    /// The probability that a message is lost.
    pub loss: f64,
    /// The probability that a write arrives at a replica once more, up to minutes later.
    pub duplicates: f64,
    /// True if writes that a node missed are kept for it by others.
    pub hints: bool,
    /// True if a read brings the replicas it asked up to date before it answers.
    pub read_repair: bool,
}

impl Weather {
    /// Returns a weather in which messages take at least and at most so long, and nothing happens to them; what a node missed is brought to it.
    pub fn calm(latency: (Duration, Duration)) -> Self {
        let slow = (0.0, Duration::ZERO);
        Self { latency, slow, loss: 0.0, duplicates: 0.0, hints: true, read_repair: true }
    }

    /// Returns how many nanoseconds a message takes on a connection, where everything behind a slow one is slow, too.
    pub(crate) fn travel_in_order(&self, chance: &mut Chance) -> u64 {
        let (least, most) = self.latency;
        let (probability, slow) = self.slow;
        let time = if chance.happens(probability / 4.0) {
            chance.between(most, slow)
        } else {
            chance.between(least, most)
        };
        u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
    }

    /// Ends all trouble of messages.
    pub fn calm_down(&mut self) {
        (self.slow.0, self.loss, self.duplicates) = (0.0, 0.0, 0.0);
    }
}

/// The nodes and the network; see the [module](self).
#[derive(Debug)]
pub struct Cluster {
    pub(super) world: Arc<World>,
    weather: Mutex<Weather>,
    pub(super) replicas: Mutex<Vec<Replica>>,
    /// What each node knows of the ring.
    pub(super) rings: Mutex<Vec<Ring>>,
    pub(super) chance: Mutex<Chance>,
    /// What clients rely on, for the checks.
    pub heartbeats: Heartbeats,
    /// The network between the clients.
    pub network: Arc<Network>,
    /// How many requests clients have sent.
    pub(super) requests: AtomicU64,
    /// The texts of the runs of jobs. Cells have their numbers.
    pub(super) runs: Mutex<Vec<String>>,
}

/// The reply that a sender waits for: called once or never.
pub(super) type Reply<T> = Box<dyn FnOnce(T) + Send>;
/// Makes the cells of a write, given the second that the coordinator's clock shows.
pub(super) type Make = Box<dyn FnOnce(i64) -> Cells + Send>;

impl Cluster {
    /// Creates so many nodes, all of them replicas of everything, whose clocks are wrong by so many microseconds.
    pub fn new(world: &Arc<World>, weather: Weather, clock_offsets: &[i64], chance: Chance) -> Arc<Self> {
        Arc::new(Self {
            world: Arc::clone(world),
            weather: Mutex::new(weather),
            replicas: Mutex::new(clock_offsets.iter().copied().map(Replica::new).collect()),
            rings: Mutex::new(vec![Ring::of(clock_offsets.len()); clock_offsets.len()]),
            chance: Mutex::new(chance),
            heartbeats: Heartbeats::default(),
            network: Network::new(world),
            requests: AtomicU64::new(0),
            runs: Mutex::default(),
        })
    }

    /// Returns how many requests clients have sent.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Ends all trouble, and starts every node.
    pub fn calm_down(self: &Arc<Self>) {
        self.network.calm_down();
        self.weather.lock().calm_down();
        (0..self.replicas()).for_each(|number| self.start(number));
    }

    /// Lets no node compact any more: then a cell that has ended is not made a tombstone, except in answers, and nothing is forgotten.
    pub fn stop_compaction(&self) {
        self.replicas.lock().iter_mut().for_each(|replica| replica.compacts = false);
    }

    /// Lets all nodes keep tombstones for so long, as `gc_grace_seconds` of a table does.
    pub fn set_gc_grace(&self, gc_grace: Duration) {
        let seconds = i64::try_from(gc_grace.as_secs()).unwrap_or(i64::MAX);
        self.replicas.lock().iter_mut().for_each(|replica| replica.gc_grace = seconds);
    }

    /// Stops a node; what it has stays on its disk.
    pub fn stop(&self, number: usize) {
        self.replicas.lock()[number].is_up = false;
        self.world.note(|| format!("node {number} is down"));
    }

    /// Stops a node, which has then forgotten what its commit log had not yet on the disk.
    pub fn crash(&self, number: usize) {
        self.stop(number);
        self.replicas.lock()[number].forget();
        self.world.note(|| format!("node {number} has forgotten what it acknowledged last"));
    }

    /// Sets the clock of a node, which is wrong by so many microseconds from now on.
    pub fn set_clock(&self, number: usize, offset: i64) {
        self.replicas.lock()[number].clock_offset = offset;
        self.world.note(|| format!("the clock of node {number} is wrong by {offset} µs"));
    }

    fn replicas(&self) -> usize {
        self.replicas.lock().len()
    }

    fn ring(&self, coordinator: usize) -> Ring {
        self.rings.lock()[coordinator].clone()
    }

    /// Stops a node for ever.
    pub(super) fn stop_for_ever(&self, number: usize) {
        self.stop(number);
        self.replicas.lock()[number].is_dead = true;
    }

    /// Starts a node again; the others then give it what they kept for it.
    pub fn start(self: &Arc<Self>, number: usize) {
        let hints: Vec<_> = {
            let mut replicas = self.replicas.lock();
            if replicas[number].is_up || replicas[number].is_dead {
                return;
            }
            replicas[number].is_up = true;
            replicas
                .iter_mut()
                .flat_map(|replica| replica.hints.extract_if(.., |hint| hint.0 == number))
                .collect()
        };
        self.world.note(|| format!("node {number} is up"));
        for (_, key, cells) in hints {
            let cluster = Arc::clone(self);
            self.world.after(Duration::from_secs(1), move || {
                cluster.apply(number, &key, &cells);
            });
        }
    }

    /// Returns what all nodes together know: for the checks, not for clients.
    pub fn truth(&self, key: &Key) -> Result<Partition> {
        let replicas: Vec<_> = self.rings.lock().iter().flat_map(Ring::written).collect();
        let all_nodes = self.replicas.lock();
        let replicas = all_nodes.iter().enumerate().filter(|(number, _)| replicas.contains(number));
        let replicas: Vec<_> = replicas.map(|(_, replica)| replica).collect();
        let mut all = Cells::default();
        replicas.iter().for_each(|replica| all.merge(&replica.read(key)));
        let earliest = replicas.iter().map(|replica| replica.second(self.world.now())).min().unwrap_or(0);
        mutation::partition(&all, earliest)
    }

    /// Takes a write of a client.
    pub(super) fn write(self: &Arc<Self>, key: Key, make: Make, reply: Reply<()>) {
        let coordinator = self.any();
        let cluster = Arc::clone(self);
        self.send(move || cluster.coordinate_write(coordinator, &key, make, reply));
    }

    fn coordinate_write(self: &Arc<Self>, coordinator: usize, key: &Key, make: Make, reply: Reply<()>) {
        let cells = {
            let replicas = self.replicas.lock();
            if !replicas[coordinator].is_up {
                return;
            }
            make(replicas[coordinator].second(self.world.now()))
        };
        let acknowledged = Arc::new(Mutex::new((0, Some(reply))));
        let ring = self.ring(coordinator);
        let enough = ring.acknowledgements();
        for number in ring.written() {
            let (cluster, key, cells) = (Arc::clone(self), key.clone(), cells.clone());
            let acknowledged = Arc::clone(&acknowledged);
            self.deliver(coordinator, number, key.clone(), cells.clone(), move || {
                if cluster.apply(number, &key, &cells) {
                    let back = Arc::clone(&cluster);
                    cluster.send(move || back.count(&acknowledged, enough));
                }
            });
        }
    }

    /// Brings a write to a replica, perhaps late, perhaps twice, perhaps as a hint, perhaps never.
    fn deliver(
        self: &Arc<Self>,
        coordinator: usize,
        number: usize,
        key: Key,
        cells: Cells,
        arrive: impl FnOnce() + Send + 'static,
    ) {
        let (loss, duplicates, hints) = {
            let weather = self.weather.lock();
            (weather.loss, weather.duplicates, weather.hints)
        };
        let (is_lost, is_doubled, later) = {
            let mut chance = self.chance.lock();
            let later = chance.between(Duration::from_secs(1), Duration::from_secs(180));
            (coordinator != number && chance.happens(loss), chance.happens(duplicates), later)
        };
        if is_doubled {
            let (cluster, key, cells) = (Arc::clone(self), key.clone(), cells.clone());
            self.world.after(later, move || {
                cluster.apply(number, &key, &cells);
            });
        }
        let mut replicas = self.replicas.lock();
        if is_lost || !replicas[number].is_up {
            if hints && !replicas[number].is_up {
                replicas[coordinator].hints.push((number, key, cells));
            }
            return;
        }
        drop(replicas);
        self.world.after(self.travel(), arrive);
    }

    fn apply(&self, number: usize, key: &Key, cells: &Cells) -> bool {
        let replica = &mut self.replicas.lock()[number];
        if replica.is_up {
            replica.apply(key, cells, self.world.now());
        }
        replica.is_up
    }

    /// Counts one more answer; with `enough` of them the reply goes back to the client.
    fn count(self: &Arc<Self>, acknowledged: &Mutex<(usize, Option<Reply<()>>)>, enough: usize) {
        let reply = {
            let mut acknowledged = acknowledged.lock();
            acknowledged.0 += 1;
            if acknowledged.0 < enough {
                return;
            }
            acknowledged.1.take()
        };
        if let Some(reply) = reply {
            self.send(move || reply(()));
        }
    }

    /// Returns the locks of which any node has something, in the order of the ring: a few that follow this position, and the position of the last of
    /// them if there are more.
    pub(super) fn locks_after(&self, after: Option<i64>) -> (Vec<Key>, Option<i64>) {
        let replicas = self.replicas.lock();
        let locks = replicas.iter().flat_map(Replica::locks);
        let mut ring: BTreeMap<i64, Key> = locks.map(|key| (position(&key), key)).collect();
        drop(replicas);
        ring.retain(|position, _| after.is_none_or(|after| *position > after));
        let next = ring.keys().nth(PAGE - 1).copied().filter(|_| ring.len() > PAGE);
        (ring.into_values().take(PAGE).collect(), next)
    }

    /// Takes a look of a client, at a quorum unless it says of how many.
    pub(super) fn read(self: &Arc<Self>, key: Key, of: Option<usize>, reply: Reply<Result<Partition>>) {
        let coordinator = self.any();
        let cluster = Arc::clone(self);
        self.send(move || cluster.coordinate_read(coordinator, key, of, reply));
    }

    fn coordinate_read(
        self: &Arc<Self>,
        coordinator: usize,
        key: Key,
        of: Option<usize>,
        reply: Reply<Result<Partition>>,
    ) {
        let second = {
            let replicas = self.replicas.lock();
            if !replicas[coordinator].is_up {
                return;
            }
            replicas[coordinator].second(self.world.now())
        };
        let ring = self.ring(coordinator);
        let enough = of.unwrap_or_else(|| ring.quorum());
        let asked: Vec<_> = self.quorum_to_ask(&ring).into_iter().take(enough).collect();
        let answers = Arc::new(Mutex::new((Vec::new(), Some(reply))));
        for number in asked {
            let (cluster, key, answers) = (Arc::clone(self), key.clone(), Arc::clone(&answers));
            self.send(move || {
                let Some(cells) = cluster.answer(number, &key, second) else { return };
                let back = Arc::clone(&cluster);
                cluster.send(move || back.collect(&key, second, &answers, enough, (number, cells)));
            });
        }
    }

    /// Returns a replica's answer, as of the second that the coordinator says.
    fn answer(&self, number: usize, key: &Key, second: i64) -> Option<Cells> {
        let replicas = self.replicas.lock();
        replicas[number].is_up.then(|| replicas[number].answer(key, second))
    }

    /// Collects one more answer of a replica; with a quorum of them the client gets what they know together.
    fn collect(
        self: &Arc<Self>,
        key: &Key,
        second: i64,
        answers: &Answers,
        enough: usize,
        answer: (usize, Cells),
    ) {
        let (answers, reply) = {
            let mut answers = answers.lock();
            answers.0.push(answer);
            if answers.0.len() < enough {
                return;
            }
            (std::mem::take(&mut answers.0), answers.1.take())
        };
        let Some(reply) = reply else { return };
        let mut all = Cells::default();
        answers.iter().for_each(|(_, cells)| all.merge(cells));
        let look = mutation::partition(&all, second);
        let stale: Vec<_> =
            answers.iter().filter(|(_, cells)| *cells != all).map(|(number, _)| *number).collect();
        if stale.is_empty() || !self.weather.lock().read_repair {
            return self.send(move || reply(look));
        }
        self.repair(key, &stale, &all, Box::new(move |()| reply(look)));
    }

    /// Repairs as blocking read repair does: the answer waits until the replicas that were asked know it.
    fn repair(self: &Arc<Self>, key: &Key, stale: &[usize], all: &Cells, reply: Reply<()>) {
        let repaired = Arc::new(Mutex::new((0, Some(reply))));
        for &number in stale {
            let (cluster, key, all) = (Arc::clone(self), key.clone(), all.clone());
            let (repaired, enough) = (Arc::clone(&repaired), stale.len());
            self.send(move || {
                if cluster.apply(number, &key, &all) {
                    let back = Arc::clone(&cluster);
                    cluster.send(move || back.count(&repaired, enough));
                }
            });
        }
    }

    /// Sends a message, which may get lost.
    fn send(&self, arrive: impl FnOnce() + Send + 'static) {
        let loss = self.weather.lock().loss;
        if !self.chance.lock().happens(loss) {
            self.world.after(self.travel(), arrive);
        }
    }

    /// Returns how long one message takes.
    fn travel(&self) -> Duration {
        let Weather { latency, slow, .. } = self.weather.lock().clone();
        let mut chance = self.chance.lock();
        if chance.happens(slow.0) {
            return chance.between(latency.1, slow.1);
        }
        chance.between(latency.0, latency.1)
    }

    fn any(&self) -> usize {
        let replicas = self.replicas() as u64;
        self.chance.lock().below(replicas) as usize
    }

    /// Returns as many nodes as are asked, of those that are up if there are so many.
    fn quorum_to_ask(&self, ring: &Ring) -> Vec<usize> {
        let mut order = ring.natural.clone();
        let first = self.chance.lock().below(order.len() as u64) as usize;
        order.rotate_left(first);
        let replicas = self.replicas.lock();
        order.sort_by_key(|&number| !replicas[number].is_up);
        order.truncate(ring.quorum());
        order
    }
}

/// Returns the position of a lock on the ring. As in Cassandra, two locks hardly ever have one.
fn position(key: &Key) -> i64 {
    let mut hasher = DefaultHasher::new();
    (key.group(), key.name()).hash(&mut hasher);
    hasher.finish().cast_signed()
}

type Answers = Mutex<(Vec<(usize, Cells)>, Option<Reply<Result<Partition>>>)>;
