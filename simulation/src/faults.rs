//! The kinds of trouble, and the trouble of one run.

use std::time::Duration;

use clap::ValueEnum;

use crate::chance::Chance;
use crate::store::Weather;

/// A kind of trouble. Each run has about half of those that are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Fault {
    /// Messages that take seconds, and so arrive out of order
    Delay,
    /// Messages that get lost
    Loss,
    /// Writes that arrive once more, up to minutes later
    Duplicate,
    /// A node that is down for a while and misses writes
    Down,
    /// The other nodes keep nothing for a node that is down
    NoHints,
    /// Reads do not mend the replicas they ask
    NoRepair,
    /// A client that does not run for a while
    Pause,
    /// A client that does not run, and whose clock stands still meanwhile
    StandStill,
    /// A client that is killed
    Crash,
    /// Wall clocks of clients that step, and are wrong by minutes, not only by seconds
    Step,
    /// Clocks of clients that run too fast or too slow, by up to two in a hundred
    Drift,
    /// Clocks of nodes that differ, by less than `max_clock_skew`
    Skew,
    /// A node that has forgotten what it acknowledged in the last ten seconds when it comes back, always the same one: more than the
    /// engine promises to bear, so only where it is asked for
    Forget,
}

/// The trouble of one run.
#[derive(Clone, Debug)]
pub struct Plan {
    chosen: Vec<Fault>,
}

impl Fault {
    /// Returns every fault that the engine promises to bear.
    pub fn borne() -> Vec<Self> {
        Self::value_variants().iter().copied().filter(|fault| *fault != Self::Forget).collect()
    }
}

impl Plan {
    /// Chooses among what is allowed.
    pub fn new(allowed: &[Fault], chance: &mut Chance) -> Self {
        // One number per kind, whether it is allowed or not: so the rest of the run stays as similar as possible.
        let borne = Fault::borne().into_iter().filter(|_| chance.happens(0.5));
        // This one is not left to chance: a caller that asks for it wants to see it.
        let chosen = borne.chain([Fault::Forget]);
        Self { chosen: chosen.filter(|fault| allowed.contains(fault)).collect() }
    }

    /// Returns whether this goes wrong.
    pub fn has(&self, fault: Fault) -> bool {
        self.chosen.contains(&fault)
    }

    /// Returns how messages fare.
    pub fn weather(&self, chance: &mut Chance) -> Weather {
        let ms = Duration::from_millis;
        let if_any = |fault, probability| if self.has(fault) { probability } else { 0.0 };
        Weather {
            latency: (ms(1), ms(1 + chance.below(20))),
            slow: (if_any(Fault::Delay, 0.05), Duration::from_secs(1 + chance.below(20))),
            loss: if_any(Fault::Loss, 0.03),
            duplicates: if_any(Fault::Duplicate, 0.05),
            hints: !self.has(Fault::NoHints),
            read_repair: !self.has(Fault::NoRepair),
        }
    }

    /// Returns the errors of the nodes' clocks: any two differ by less than two seconds.
    pub fn node_clocks(&self, nodes: usize, chance: &mut Chance) -> Vec<i64> {
        let mut clock = || if self.has(Fault::Skew) { chance.around_zero(990_000) } else { 0 };
        (0..nodes).map(|_| clock()).collect()
    }

    /// Returns how fast a client's clock runs, and the error of its wall clock.
    pub fn client_clock(&self, chance: &mut Chance) -> (f64, i64) {
        let (drift, step) = (chance.around_zero(20_000), chance.around_zero(600_000_000));
        let rate = if self.has(Fault::Drift) { 1.0 + drift as f64 / 1e6 } else { 1.0 };
        // Any two differ by less than what a hybrid clock follows.
        (rate, if self.has(Fault::Step) { step } else { step / 24 })
    }
}
