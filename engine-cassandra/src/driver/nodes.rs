//! Knows which nodes answer, by what this client has seen itself.
//!
//! A node that is cut off from its peers still takes connections and answers the driver's keepalives, so the driver believes it to
//! be well; but as a coordinator it reaches no quorum, and each request that goes to it costs a whole request timeout.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use uuid::Uuid;
use ylock_core::environment::{Environment, Moment};

/// The time after which a doubted node is tried again, in multiples of [`Nodes::patience`].
const PROBES: u32 = 4;

/// The observations of the nodes. They outlive the driver's session.
#[derive(Debug)]
pub(super) struct Nodes {
    environment: Arc<dyn Environment>,
    /// The time without an answer after which a node that was asked is doubted, and a read is sent to another node too.
    patience: Duration,
    seen: Mutex<HashMap<Uuid, Seen>>,
}

/// The observations of one node.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// The moment at which it was asked for the first time since its last answer. A request that was given up counts too: the driver
    /// says nothing of such requests, and a hanging node is known by them.
    asked: Option<Moment>,
    answered: Moment,
    /// True if its last answer was that it cannot do what it is there for.
    refused: bool,
    /// The moment at which it refused, or was tried although it was doubted.
    tried: Moment,
}

impl Nodes {
    pub(super) fn new(environment: Arc<dyn Environment>, patience: Duration) -> Self {
        Self { environment, patience, seen: Mutex::default() }
    }

    pub(super) fn patience(&self) -> Duration {
        self.patience
    }

    /// Notes that a request goes to this node.
    pub(super) fn asked(&self, node: Uuid) {
        let now = self.environment.now();
        self.seen.lock().entry(node).or_default().asked.get_or_insert(now);
    }

    /// Notes that this node has answered, whatever it said.
    pub(super) fn answered(&self, node: Uuid, refused: bool) {
        let now = self.environment.now();
        let mut seen = self.seen.lock();
        let seen = seen.entry(node).or_default();
        (seen.asked, seen.refused) = (None, refused);
        if refused { seen.tried = now } else { seen.answered = now }
    }

    /// Returns whether other nodes shall be asked first.
    pub(super) fn is_doubted(&self, node: Uuid) -> bool {
        let now = self.environment.now();
        self.seen.lock().get(&node).is_some_and(|seen| seen.is_doubted(now, self.patience))
    }

    /// Returns whether other nodes shall be asked first by a request that may probe. When it is time to try the node again, one of all
    /// requests gets `false`.
    pub(super) fn is_doubted_by_a_probe(&self, node: Uuid) -> bool {
        let now = self.environment.now();
        let mut all = self.seen.lock();
        let Some(seen) = all.get_mut(&node).filter(|seen| seen.is_doubted(now, self.patience)) else {
            return false;
        };
        let tried = seen.asked.map_or(seen.tried, |asked| asked.max(seen.tried));
        let is_due = now.since(tried) >= self.patience * PROBES;
        if is_due {
            seen.tried = now;
        }
        !is_due
    }

    /// Returns the order in which to ask: nodes without a doubt as they are, then the doubted ones, of which the one that answered last
    /// comes first.
    pub(super) fn order<T>(&self, plan: impl Iterator<Item = T>, id: impl Fn(&T) -> Uuid) -> Vec<T> {
        let now = self.environment.now();
        let mut plan: Vec<T> = plan.collect();
        let all = self.seen.lock();
        plan.sort_by_key(|node| {
            let doubted = all.get(&id(node)).filter(|seen| seen.is_doubted(now, self.patience));
            doubted.map(|seen| std::cmp::Reverse(seen.answered))
        });
        plan
    }
}

impl Seen {
    fn is_doubted(&self, now: Moment, patience: Duration) -> bool {
        self.refused || self.asked.is_some_and(|asked| now.since(asked) >= patience)
    }
}

#[cfg(test)]
mod tests {
    use ylock_core::environment::SystemEnvironment;

    use super::*;

    const PATIENCE: Duration = Duration::from_millis(250);
    const NODE: Uuid = Uuid::from_u128(1);
    const OTHER: Uuid = Uuid::from_u128(2);

    fn nodes() -> Nodes {
        Nodes::new(SystemEnvironment::on_tokio_clock(), PATIENCE)
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_that_was_asked_and_says_nothing_is_doubted_until_it_answers() {
        let nodes = nodes();
        assert!(!nodes.is_doubted(NODE), "nothing is known");
        nodes.asked(NODE);
        tokio::time::advance(PATIENCE / 2).await;
        // A second request must not make the first one younger.
        nodes.asked(NODE);
        assert!(!nodes.is_doubted(NODE));
        tokio::time::advance(PATIENCE / 2).await;
        assert!(nodes.is_doubted(NODE));
        nodes.answered(NODE, false);
        assert!(!nodes.is_doubted(NODE));
        tokio::time::advance(PATIENCE * 100).await;
        assert!(!nodes.is_doubted(NODE), "a node that is not asked need not answer");
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_that_cannot_is_doubted_at_once() {
        let nodes = nodes();
        nodes.answered(NODE, true);
        assert!(nodes.is_doubted(NODE));
        nodes.answered(NODE, false);
        assert!(!nodes.is_doubted(NODE));
    }

    #[tokio::test(start_paused = true)]
    async fn a_doubted_node_is_tried_by_one_request_at_a_time() {
        let nodes = nodes();
        nodes.answered(NODE, true);
        assert!(nodes.is_doubted_by_a_probe(NODE), "it has just been tried");
        tokio::time::advance(PATIENCE * PROBES).await;
        assert!(!nodes.is_doubted_by_a_probe(NODE), "the first one tries it");
        assert!(nodes.is_doubted_by_a_probe(NODE), "and no other");
        tokio::time::advance(PATIENCE * PROBES).await;
        assert!(nodes.is_doubted(NODE), "only probes try it");
        assert!(!nodes.is_doubted_by_a_probe(NODE));
    }

    #[tokio::test(start_paused = true)]
    async fn doubted_nodes_come_last_and_among_them_the_one_that_answered_last_comes_first() {
        let nodes = nodes();
        let third = Uuid::from_u128(3);
        nodes.answered(NODE, false);
        tokio::time::advance(PATIENCE).await;
        nodes.answered(OTHER, false);
        for node in [NODE, OTHER] {
            nodes.answered(node, true);
        }
        let order = nodes.order([NODE, OTHER, third].into_iter(), |node| *node);
        assert_eq!(order, [third, OTHER, NODE]);
    }
}
