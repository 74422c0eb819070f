//! Which nodes are replicas, as each coordinator knows it; and how that changes.
//!
//! A node that joins takes the place of one that leaves. As soon as a coordinator knows of it, it is *pending*: it gets every write, each write
//! needs one acknowledgement more, and no read asks it. Once every coordinator knows, it gets the data that are there. Then it takes over.

use std::sync::Arc;
use std::time::Duration;

use super::cells::Cells;
use super::cluster::Cluster;
use super::replica::Replica;

/// The time that coordinators have to hear of a node before it asks for data: Cassandra waits for half a minute.
const RING_DELAY: Duration = Duration::from_secs(5);
/// The pause before data are asked for again from a node that is down.
const AGAIN: Duration = Duration::from_secs(1);

/// What a coordinator knows.
#[derive(Clone, Debug)]
pub(super) struct Ring {
    pub(super) natural: Vec<usize>,
    pub(super) pending: Option<usize>,
}

/// A change of the ring.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// The node that leaves.
    pub leaves: usize,
    /// True if that one is dead: then the data come from all others, as a repair brings them. Otherwise they come from that one.
    pub is_dead: bool,
    /// The longest time by which a coordinator hears of a step later than another one.
    pub lag: Duration,
    /// The error of the new node's clock, in microseconds.
    pub clock_offset: i64,
}

impl Ring {
    pub(super) fn of(nodes: usize) -> Self {
        Self { natural: (0..nodes).collect(), pending: None }
    }

    /// Returns the nodes that get a write.
    pub(super) fn written(&self) -> Vec<usize> {
        self.natural.iter().copied().chain(self.pending).collect()
    }

    /// Returns how many of these must acknowledge it.
    pub(super) fn acknowledgements(&self) -> usize {
        self.quorum() + usize::from(self.pending.is_some())
    }

    pub(super) fn quorum(&self) -> usize {
        self.natural.len() / 2 + 1
    }
}

impl Cluster {
    /// Begins a change of the ring. Returns whether it did: there is one at a time, and only of a node that is a replica.
    pub fn change_ring(self: &Arc<Self>, change: Change) -> bool {
        let new = {
            let mut replicas = self.replicas.lock();
            let mut rings = self.rings.lock();
            let is_steady =
                rings.iter().all(|ring| ring.pending.is_none() && ring.natural.contains(&change.leaves));
            if !is_steady {
                return false;
            }
            let ring = rings[0].clone();
            replicas.push(Replica::new(change.clock_offset));
            rings.push(ring);
            replicas.len() - 1
        };
        if change.is_dead {
            self.stop_for_ever(change.leaves);
        }
        self.world.note(|| format!("node {new} joins: {change:?}"));
        self.each_hears(change.lag, move |ring| ring.pending = Some(new));
        let cluster = Arc::clone(self);
        self.world.after(change.lag + RING_DELAY, move || cluster.stream(new, change));
        true
    }

    /// Tells every coordinator of a step, each a little later.
    fn each_hears(self: &Arc<Self>, lag: Duration, step: impl Fn(&mut Ring) + Clone + Send + 'static) {
        let coordinators = self.rings.lock().len();
        for number in 0..coordinators {
            let delay = self.chance.lock().between(Duration::ZERO, lag);
            let (cluster, step) = (Arc::clone(self), step.clone());
            let heard = move || step(&mut cluster.rings.lock()[number]);
            if lag.is_zero() { heard() } else { self.world.after(delay, heard) }
        }
    }

    /// Brings the data to the new node, and lets it take over.
    fn stream(self: &Arc<Self>, new: usize, change: Change) {
        let sources = self.sources(change);
        let Some(sources) = sources else {
            let cluster = Arc::clone(self);
            return self.world.after(AGAIN, move || cluster.stream(new, change));
        };
        let data: Vec<(_, Cells)> = {
            let replicas = self.replicas.lock();
            sources.iter().flat_map(|&source| replicas[source].all()).collect()
        };
        let time = self.chance.lock().between(Duration::ZERO, RING_DELAY);
        let cluster = Arc::clone(self);
        self.world.after(time, move || {
            for (key, cells) in data {
                cluster.replicas.lock()[new].take(&key, &cells, cluster.world.now());
            }
            cluster.world.note(|| format!("node {new} takes over"));
            cluster.each_hears(change.lag, move |ring| {
                ring.pending = None;
                ring.natural.retain(|&node| node != change.leaves);
                ring.natural.push(new);
            });
        });
    }

    /// Returns the nodes that the data come from; `None` as long as one of them is down.
    fn sources(&self, change: Change) -> Option<Vec<usize>> {
        let mut sources = self.rings.lock()[0].natural.clone();
        sources.retain(|&node| (node == change.leaves) != change.is_dead);
        let replicas = self.replicas.lock();
        sources.iter().all(|&node| replicas[node].is_up).then_some(sources)
    }
}
