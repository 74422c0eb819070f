//! The kinds of trouble, and the trouble of one run.

use std::time::Duration;

use clap::ValueEnum;

use crate::chance::Chance;
use crate::etcd;
use crate::store::Weather;
use crate::zookeeper::Rules;

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
    /// Clocks of nodes that differ, by less than `max_clock_skew`; with `expiry=observed` they also step
    Skew,
    /// A node that has forgotten what it acknowledged in the last ten seconds when it comes back, always the same one: more than the
    /// engine promises to bear, so only where it is asked for
    Forget,
    /// A ZooKeeper server that the other servers do not reach for a while, and that goes on answering its clients until it notices
    Cut,
    /// A ZooKeeper leader that steps down
    Election,
    /// A ZooKeeper follower that shows what was written up to two seconds later than the others
    Lag,
    /// A Cassandra node that takes the place of another one, which leaves; and one that takes the place of one that has died, after a repair.
    /// All coordinators hear of it at once. Only where it is asked for
    Join,
    /// A node that joins, of which coordinators hear one after the other: more than the engine promises to bear
    Gossip,
    /// A runtime of a client that ends, with the connection to ZooKeeper that was made in it
    Runtime,
    /// A Redis server whose clock is set back, by up to 25 s in all
    SetBack,
    /// A Redis server whose clock is set forward, by more than a lease: more than the engine promises to bear
    SetForward,
    /// A slot of a Redis cluster that moves to another server, key by key
    Reshard,
    /// Servers of a Redis cluster whose clocks differ by seconds: more than the engine promises to bear
    Apart,
    /// A Redis replica that takes over and lacks the last two seconds: more than the engine promises to bear
    FailOver,
    /// An etcd cluster that is set up anew, with nothing in it or from a backup, when it was away for longer than a lease lasts. Clients' wall clocks
    /// are right within two seconds then. With `forget` it is not away at all, which is more than the engine promises to bear
    Anew,
}

/// The trouble of one run.
#[derive(Clone, Debug)]
pub struct Plan {
    chosen: Vec<Fault>,
}

impl Fault {
    /// The kinds that only an ensemble knows.
    const OF_AN_ENSEMBLE: [Self; 4] = [Self::Cut, Self::Election, Self::Lag, Self::Runtime];

    /// The kinds that only a Redis server knows.
    const OF_REDIS: [Self; 1] = [Self::SetBack];
    /// The kinds that only a Redis cluster knows.
    const OF_A_CLUSTER: [Self; 1] = [Self::Reshard];
    /// The kinds that only an etcd cluster knows.
    const OF_ETCD: [Self; 1] = [Self::Anew];
    /// The kinds that are not there unless they are asked for: most are more than an engine promises to bear.
    const TOO_MUCH: [Self; 6] =
        [Self::Forget, Self::SetForward, Self::FailOver, Self::Join, Self::Gossip, Self::Apart];

    /// Returns every fault that the engines promise to bear.
    pub fn borne() -> Vec<Self> {
        Self::value_variants().iter().copied().filter(|fault| !Self::TOO_MUCH.contains(fault)).collect()
    }
}

impl Plan {
    /// Chooses among what is allowed.
    pub fn new(allowed: &[Fault], chance: &mut Chance) -> Self {
        // One number per kind, whether it is allowed or not: so the rest of the run stays as similar as possible.
        let of_some = [&Fault::OF_AN_ENSEMBLE[..], &Fault::OF_REDIS, &Fault::OF_A_CLUSTER, &Fault::OF_ETCD];
        let of_all =
            Fault::borne().into_iter().filter(|fault| !of_some.iter().any(|some| some.contains(fault)));
        let mut chosen: Vec<_> = of_all.filter(|_| chance.happens(0.5)).collect();
        // Not where there is no such store: so a seed that was found stays what it was.
        for some in of_some {
            if allowed.iter().any(|fault| some.contains(fault)) {
                chosen.extend(some.iter().filter(|_| chance.happens(0.5)));
            }
        }
        // These are not left to chance: a caller that asks for one wants to see it.
        chosen.extend(Fault::TOO_MUCH);
        // Tokens grow over a new cluster as long as wall clocks are right.
        if chosen.contains(&Fault::Anew) {
            chosen.retain(|fault| *fault != Fault::Step);
        }
        Self { chosen: chosen.into_iter().filter(|fault| allowed.contains(fault)).collect() }
    }

    /// Returns whether nothing goes wrong.
    pub fn is_without_trouble(&self) -> bool {
        self.chosen.is_empty()
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

    /// Returns the errors of the nodes' clocks: any two differ by less than this.
    pub fn node_clocks(&self, nodes: usize, max_clock_skew: Duration, chance: &mut Chance) -> Vec<i64> {
        // Half of it, less a hundredth: the seconds of two nodes begin at different times.
        let most = i64::try_from(max_clock_skew.as_micros()).unwrap_or(i64::MAX) / 200 * 99;
        let mut clock = || if self.has(Fault::Skew) { chance.around_zero(most) } else { 0 };
        (0..nodes).map(|_| clock()).collect()
    }

    /// Returns how an ensemble works, whose sessions have this timeout.
    pub fn ensemble(&self, servers: usize, session: Duration, chance: &mut Chance) -> Rules {
        let lag = if self.has(Fault::Lag) { 2_000 } else { 5 };
        let mut rate =
            || 1.0 + if self.has(Fault::Drift) { chance.around_zero(20_000) as f64 / 1e6 } else { 0.0 };
        let rates = (0..servers).map(|_| rate()).collect();
        let (ticks, patience) = (3 + chance.below(4) as u32, 2 + chance.below(4) as u32);
        Rules { session, ticks, patience, lag: Duration::from_millis(chance.below(lag)), rates }
    }

    /// Returns how an etcd cluster works.
    pub fn etcd(&self, members: usize, chance: &mut Chance) -> etcd::Rules {
        let lag = if self.has(Fault::Lag) { 2_000 } else { 5 };
        let rates = (0..members).map(|_| self.server_clock(chance)).collect();
        // A leader that was deposed may go on for much longer than the others wait for it: nothing rests on its finding out.
        let [patience, trust] = [2_000, 19_000].map(|most| Duration::from_millis(1_000 + chance.below(most)));
        etcd::Rules { patience, trust, lag: Duration::from_millis(chance.below(lag)), rates }
    }

    /// Returns how fast the clock of a server runs.
    pub fn server_clock(&self, chance: &mut Chance) -> f64 {
        let drift = chance.around_zero(20_000);
        if self.has(Fault::Drift) { 1.0 + drift as f64 / 1e6 } else { 1.0 }
    }

    /// Returns how fast a client's clock runs, and the error of its wall clock.
    /// It is wrong by so many hundredths at most.
    pub fn client_clock(&self, hundredths: f64, chance: &mut Chance) -> (f64, i64) {
        let (drift, step) = (chance.around_zero(20_000), chance.around_zero(600_000_000));
        let drift = drift as f64 / 2e6 * hundredths;
        let rate = if self.has(Fault::Drift) { 1.0 + drift } else { 1.0 };
        let error = match (self.has(Fault::Step), self.has(Fault::Anew)) {
            (true, _) => step,
            (false, true) => step / 600,
            // Any two differ by less than what a hybrid clock follows.
            (false, false) => step / 24,
        };
        (rate, error)
    }
}
