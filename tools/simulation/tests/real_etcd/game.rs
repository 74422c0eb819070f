//! Random operations of one client on a few keys.

use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{Either, select};
use ylock_core::Owner;
use ylock_engine_etcd::algorithm::store::{
    Entry, Keys, Look, Outcome, Put, Step as Does, Transaction, Watching,
};
use ylock_simulation::chance::Chance;

use super::operations::Operation;
use super::said::Step;
use super::sides::Side;

/// The keys, without what those of a run begin with: as those of contenders, two kinds beside each other, and one beside them.
pub(crate) const KEYS: [&str; 8] = ["n/r/1", "n/r/2", "n/w/1", "n/w/2", "n/w/3", "n/w/4", "o/w/1", "floor"];
/// The watches that are kept; the oldest are taken back.
const WATCHES: usize = 12;
const PATIENCE: Duration = Duration::from_secs(30);

/// The state of one side.
pub(crate) struct Game {
    pub(crate) side: Side,
    /// What the keys of this run begin with, which no other run has.
    base: String,
    pub(crate) chance: Chance,
    /// All leases that were made, in order. Some have been revoked.
    pub(crate) leases: Vec<i64>,
    /// What there was before this operation.
    pub(crate) known: Vec<Entry>,
    watches: Vec<(String, Watching)>,
    watched: usize,
    /// What is said in this step.
    pub(crate) step: Step,
}

impl Game {
    pub(crate) async fn play(side: Side, seed: u64, operations: usize) -> Vec<Step> {
        let mut game = Self {
            side,
            base: format!("simulated-{}/", Owner::new()),
            chance: Chance::new(seed),
            leases: Vec::new(),
            known: Vec::new(),
            watches: Vec::new(),
            watched: 0,
            step: Step::default(),
        };
        let mut steps = Vec::new();
        for _ in 0..operations {
            game.look().await;
            let operation = Operation::any(&mut game.chance);
            game.perform(operation).await;
            game.hear().await;
            steps.push(std::mem::take(&mut game.step));
        }
        game.clean().await;
        steps
    }

    pub(crate) fn key(&self, name: &str) -> Vec<u8> {
        format!("{}{name}", self.base).into_bytes()
    }

    pub(crate) fn all(&self) -> Keys {
        Keys::below(self.base.clone())
    }

    /// Looks at everything, so that conditions can be about what there is.
    async fn look(&mut self) {
        let looking = Transaction::looking([Look::at(self.all())]);
        let mut outcome = self.side.servers.transact(looking).await.expect("a look");
        self.step.outcome("there is", &outcome, &self.leases);
        if let Some(ylock_engine_etcd::algorithm::store::Done::Looked(seen)) = outcome.done.pop() {
            self.known = seen.entries;
        }
    }

    pub(crate) async fn transact(&mut self, transaction: Transaction) {
        match self.side.servers.transact(transaction).await {
            Ok(outcome) => self.step.outcome("transaction", &outcome, &self.leases),
            Err(fault) => self.step.fault("transaction", &fault),
        }
    }

    pub(crate) async fn watch(&mut self, name: &str, changes: bool) {
        let watching = self.side.servers.watch(self.key(name), changes).await.expect("a watch");
        self.watched += 1;
        self.watches.push((format!("watch {} of {name}, {changes}", self.watched), watching));
        if self.watches.len() > WATCHES {
            self.watches.remove(0);
        }
    }

    pub(crate) fn unwatch(&mut self) {
        if !self.watches.is_empty() {
            let at = self.chance.below(self.watches.len() as u64) as usize;
            drop(self.watches.remove(at));
        }
    }

    /// Notes the watches that have told of something: when one that was made last has told of what was done last, all have.
    async fn hear(&mut self) {
        if self.watches.is_empty() {
            return;
        }
        let last = self.key("last");
        let watching = self.side.servers.watch(last.clone(), true).await.expect("a watch");
        self.put_last(&last).await;
        let told = select(watching.told, self.side.clock.sleep(PATIENCE)).await;
        assert!(matches!(told, Either::Left((Ok(event), _)) if !event.is_deletion), "a change is told");
        let step = &mut self.step;
        self.watches.retain_mut(|(what, watching)| match (&mut watching.told).now_or_never() {
            Some(Ok(event)) => {
                step.say(format!("{what}: it was {}", if event.is_deletion { "deleted" } else { "changed" }));
                false
            }
            Some(Err(_)) => panic!("{what} has ended"),
            None => true,
        });
    }

    async fn put_last(&self, key: &[u8]) -> Outcome {
        let put = Put { key: key.to_vec(), value: Vec::new(), lease: Some(0) };
        let putting = Transaction { then: vec![Does::Put(put)], ..Transaction::default() };
        self.side.servers.transact(putting).await.expect("a put")
    }

    /// Takes away what is left.
    async fn clean(&mut self) {
        self.look().await;
        let then = self.known.iter().map(|entry| Does::Delete(entry.key.clone())).collect();
        let deleting = Transaction { then, ..Transaction::default() };
        self.side.servers.transact(deleting).await.expect("what is left goes");
        for lease in &self.leases {
            self.side.servers.revoke(*lease).await.expect("a lease that is there, or not");
        }
    }
}
