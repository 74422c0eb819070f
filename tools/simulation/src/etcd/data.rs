//! What every member keeps: keys with their revisions, and leases.

use std::collections::BTreeMap;

use ylock_core::{Error, ErrorKind};
use ylock_engine_etcd::algorithm::store::{
    Condition, Done, Entry, Fault, Keys, Look, Put, Seen, Step, Transaction,
};

use super::LeaseId;
use super::event::Change;

/// The shortest time for which servers keep a lease, in seconds: with the usual time of an election.
const SHORTEST_LEASE: i64 = 2;

/// What a member keeps; see the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Data {
    revision: i64,
    keys: BTreeMap<Vec<u8>, Entry>,
    /// The leases, each with the seconds for which it lives when it is prolonged.
    leases: BTreeMap<LeaseId, i64>,
}

/// What a transaction has come to: whether its conditions held, and the answers to its steps.
pub(super) type Carried = (bool, Vec<Done>);

/// A key that has changed, and whether it was deleted.
pub(super) type Changed = (Vec<u8>, bool);

/// The answer to a change.
#[derive(Clone, Debug)]
pub(super) enum Applied {
    Nothing,
    Carried(Carried),
    Granted(LeaseId, i64),
    Revoked,
}

impl Default for Data {
    /// Returns what a new member keeps, which is at revision 1.
    fn default() -> Self {
        Self { revision: 1, keys: BTreeMap::new(), leases: BTreeMap::new() }
    }
}

impl Data {
    pub(super) fn revision(&self) -> i64 {
        self.revision
    }

    pub(super) fn leases(&self) -> impl Iterator<Item = (LeaseId, i64)> + '_ {
        self.leases.iter().map(|(&lease, &seconds)| (lease, seconds))
    }

    /// Returns for how many seconds a lease lives when it is prolonged, if there is such a lease.
    pub(super) fn seconds(&self, lease: LeaseId) -> Option<i64> {
        self.leases.get(&lease).copied()
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &Entry> {
        self.keys.values()
    }

    /// Makes a change. Returns its answer, and what watches have to tell of it.
    pub(super) fn apply(&mut self, change: &Change) -> (Result<Applied, Fault>, Vec<Changed>) {
        match change {
            Change::Nothing => (Ok(Applied::Nothing), Vec::new()),
            Change::Transact(transaction) => self.transact(transaction),
            Change::Grant(lease, seconds) => {
                let seconds = (*seconds).max(SHORTEST_LEASE);
                self.leases.insert(*lease, seconds);
                (Ok(Applied::Granted(*lease, seconds)), Vec::new())
            }
            Change::Revoke(lease) => self.revoke(*lease),
        }
    }

    /// Carries out a transaction that only looks.
    pub(super) fn read(&self, transaction: &Transaction) -> Carried {
        let (held, steps) = self.chosen(transaction);
        let looks = steps.iter().filter_map(|step| match step {
            Step::Look(look) => Some(Done::Looked(self.look(look))),
            Step::Put(_) | Step::Delete(_) => None,
        });
        (held, looks.collect())
    }

    fn transact(&mut self, transaction: &Transaction) -> (Result<Applied, Fault>, Vec<Changed>) {
        let (held, steps) = self.chosen(transaction);
        // What is refused has no effect at all.
        if let Some(fault) = steps.iter().find_map(|step| self.refuses(step)) {
            return (Err(fault), Vec::new());
        }
        // One that changes nothing has no revision of its own.
        let (revision, mut changed) = (self.revision + 1, Vec::new());
        let done = steps.iter().map(|step| self.step(step, revision, &mut changed)).collect();
        if !changed.is_empty() {
            self.revision = revision;
        }
        (Ok(Applied::Carried((held, done))), changed)
    }

    fn chosen<'a>(&self, transaction: &'a Transaction) -> (bool, &'a [Step]) {
        let held = transaction.when.iter().all(|condition| self.holds(condition));
        (held, if held { &transaction.then } else { &transaction.otherwise })
    }

    /// Returns whether a condition holds. Of a key that is not there all revisions are 0.
    fn holds(&self, condition: &Condition) -> bool {
        match condition {
            Condition::MadeAt(keys, revision) => {
                let mut made = self.within(keys).map(|entry| entry.made).peekable();
                if made.peek().is_none() { *revision == 0 } else { made.all(|made| made == *revision) }
            }
            Condition::ChangedAt(key, revision) => {
                self.keys.get(key).map_or(0, |entry| entry.changed) == *revision
            }
        }
    }

    fn refuses(&self, step: &Step) -> Option<Fault> {
        match step {
            Step::Put(Put { lease: Some(lease), .. }) if *lease != 0 && !self.leases.contains_key(lease) => {
                Some(Fault::LeaseGone)
            }
            Step::Put(Put { key, lease: None, .. }) if !self.keys.contains_key(key) => {
                // The driver does not know this error, so it takes for possible that something has happened.
                Some(Fault::Unknown(Error::new(ErrorKind::Unexpected, "key not found")))
            }
            _ => None,
        }
    }

    fn within<'a>(&'a self, keys: &'a Keys) -> Box<dyn Iterator<Item = &'a Entry> + 'a> {
        match &keys.end {
            None => Box::new(self.keys.get(&keys.begin).into_iter()),
            Some(end) if *end <= keys.begin => Box::new(std::iter::empty()),
            Some(end) => Box::new(self.keys.range(keys.begin.clone()..end.clone()).map(|(_, entry)| entry)),
        }
    }

    fn step(&mut self, step: &Step, revision: i64, changed: &mut Vec<Changed>) -> Done {
        match step {
            Step::Put(Put { key, value, lease }) => {
                let before = self.keys.get(key);
                let entry = Entry {
                    key: key.clone(),
                    value: value.clone(),
                    made: before.map_or(revision, |before| before.made),
                    changed: revision,
                    lease: lease.unwrap_or_else(|| before.map_or(0, |before| before.lease)),
                };
                self.keys.insert(key.clone(), entry);
                changed.push((key.clone(), false));
                Done::Put
            }
            Step::Delete(key) => {
                let was_there = self.keys.remove(key).is_some();
                changed.extend(was_there.then(|| (key.clone(), true)));
                Done::Deleted(i64::from(was_there))
            }
            Step::Look(look) => Done::Looked(self.look(look)),
        }
    }

    fn look(&self, look: &Look) -> Seen {
        let is_shown = |entry: &&Entry| {
            look.made_before.is_none_or(|before| entry.made < before)
                && look.made_after.is_none_or(|after| entry.made > after)
        };
        let mut entries: Vec<_> = self.within(&look.keys).filter(is_shown).cloned().collect();
        if look.newest_first {
            entries.sort_by_key(|entry| std::cmp::Reverse(entry.made));
        }
        let most = usize::try_from(look.most).ok().filter(|most| *most > 0).unwrap_or(usize::MAX);
        let more = entries.len() > most;
        entries.truncate(most);
        if !look.values {
            entries.iter_mut().for_each(|entry| entry.value.clear());
        }
        Seen { entries, more }
    }

    /// Ends a lease, with all its keys, in one transaction.
    fn revoke(&mut self, lease: LeaseId) -> (Result<Applied, Fault>, Vec<Changed>) {
        if self.leases.remove(&lease).is_none() {
            return (Err(Fault::LeaseGone), Vec::new());
        }
        let keys = self.keys.values().filter(|entry| entry.lease == lease).map(|entry| entry.key.clone());
        let changed: Vec<Changed> = keys.map(|key| (key, true)).collect();
        changed.iter().for_each(|(key, _)| drop(self.keys.remove(key)));
        if !changed.is_empty() {
            self.revision += 1;
        }
        (Ok(Applied::Revoked), changed)
    }
}
