//! What is done: transactions with every condition and step that the engine uses, leases, and watches.

use ylock_engine_etcd::algorithm::store::{Condition, Keys, Look, Put, Step as Does, Transaction};
use ylock_simulation::chance::Chance;

use super::game::{Game, KEYS};

/// Longer than a test takes: the clocks of the two sides have nothing to do with each other.
const LEASE: u64 = 1_000;
/// The number of a lease that there never was.
const NO_LEASE: i64 = i64::MAX - 1;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Operation {
    Transact,
    LookOnly,
    Grant,
    Revoke,
    Watch,
    Unwatch,
}

impl Operation {
    pub(crate) fn any(chance: &mut Chance) -> Self {
        match chance.below(20) {
            0 | 1 => Self::Grant,
            2 => Self::Revoke,
            3..6 => Self::Watch,
            6 => Self::Unwatch,
            7..10 => Self::LookOnly,
            _ => Self::Transact,
        }
    }
}

impl Game {
    pub(crate) async fn perform(&mut self, operation: Operation) {
        match operation {
            Operation::Transact => {
                let transaction = Transaction {
                    when: self.conditions(),
                    then: self.steps(true),
                    otherwise: self.steps(true),
                };
                self.transact(transaction).await;
            }
            Operation::LookOnly => {
                let transaction = Transaction {
                    when: self.conditions(),
                    then: self.steps(false),
                    otherwise: self.steps(false),
                };
                self.transact(transaction).await;
            }
            Operation::Grant => {
                let seconds = i64::try_from(LEASE + self.chance.below(LEASE)).expect("seconds");
                let granted = self.side.servers.grant(seconds).await.expect("a lease");
                self.leases.push(granted.lease);
                self.step.say(format!("lease of {} s", granted.seconds));
            }
            Operation::Revoke => {
                let lease = self.lease();
                self.side.servers.revoke(lease).await.expect("a lease that is there, or not");
                self.step.say("revoked");
            }
            Operation::Watch => {
                let (name, changes) = (self.name(), self.chance.happens(0.5));
                self.watch(name, changes).await;
            }
            Operation::Unwatch => self.unwatch(),
        }
    }

    fn name(&mut self) -> &'static str {
        KEYS[self.chance.below(KEYS.len() as u64) as usize]
    }

    /// Returns any lease, often the last one; some have been revoked.
    fn lease(&mut self) -> i64 {
        match self.leases.len() as u64 {
            0 => NO_LEASE,
            _ if self.chance.happens(0.05) => NO_LEASE,
            count if self.chance.happens(0.5) => self.leases[count as usize - 1],
            count => self.leases[self.chance.below(count) as usize],
        }
    }

    fn conditions(&mut self) -> Vec<Condition> {
        let count = self.chance.below(3);
        (0..count).map(|_| self.condition()).collect()
    }

    fn condition(&mut self) -> Condition {
        let key = self.key_that_may_be_there();
        match self.chance.below(6) {
            0 => Condition::MadeAt(Keys::one(key), 0),
            1 => Condition::MadeAt(self.keys(), 0),
            2 => Condition::MadeAt(self.keys(), self.revision(&key, false)),
            3 => Condition::ChangedAt(key.clone(), self.revision(&key, true)),
            4 => Condition::ChangedAt(key, 0),
            _ => Condition::MadeAt(Keys::one(key.clone()), self.revision(&key, false)),
        }
    }

    fn key_that_may_be_there(&mut self) -> Vec<u8> {
        if !self.known.is_empty() && self.chance.happens(0.7) {
            let at = self.chance.below(self.known.len() as u64) as usize;
            return self.known[at].key.clone();
        }
        let name = self.name();
        self.key(name)
    }

    /// Returns a revision of a key as it was seen, or another one.
    fn revision(&mut self, key: &[u8], changed: bool) -> i64 {
        let entry = self.known.iter().find(|entry| entry.key == key).cloned();
        let seen = entry.map_or(0, |entry| if changed { entry.changed } else { entry.made });
        if self.chance.happens(0.2) { seen + 1 } else { seen }
    }

    fn keys(&mut self) -> Keys {
        match self.chance.below(6) {
            0 => self.all(),
            1 => Keys::below(self.key("n/w/")),
            2 => Keys::below(self.key("n/r/")),
            3 => Keys::below(self.key("n/")),
            4 => {
                let [begin, end] = [self.name(), self.name()];
                Keys { begin: self.key(begin), end: Some(self.key(end)) }
            }
            _ => Keys::one(self.key_that_may_be_there()),
        }
    }

    /// Returns steps of which no two are about one key: the servers refuse two puts of one.
    fn steps(&mut self, writes: bool) -> Vec<Does> {
        let mut names = KEYS.to_vec();
        let count = self.chance.below(4);
        let mut steps = Vec::new();
        for _ in 0..count {
            let name = names.swap_remove(self.chance.below(names.len() as u64) as usize);
            steps.push(match self.chance.below(6) {
                0..3 if writes => self.put(name),
                3 if writes => Does::Delete(self.key(name)),
                _ => Does::Look(self.look_at()),
            });
        }
        steps
    }

    fn put(&mut self, name: &str) -> Does {
        let value = format!("value {}", self.chance.below(100)).into_bytes();
        let lease = match self.chance.below(10) {
            0 => None,
            1..4 => Some(self.lease()),
            _ => Some(0),
        };
        Does::Put(Put { key: self.key(name), value, lease })
    }

    fn look_at(&mut self) -> Look {
        let keys = self.keys();
        let key = self.key_that_may_be_there();
        let mut bound = |probability| {
            let is_bound = self.chance.happens(probability);
            is_bound.then(|| self.revision(&key, false)).filter(|revision| *revision > 1)
        };
        let (made_before, made_after) = (bound(0.3), bound(0.3));
        Look {
            keys,
            newest_first: self.chance.happens(0.5),
            most: i64::try_from(self.chance.below(4)).expect("a number"),
            made_before,
            made_after,
            values: self.chance.happens(0.7),
        }
    }
}
