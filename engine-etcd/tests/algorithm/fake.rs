//! Servers in memory: what etcd does with transactions, leases and watches, and what may go wrong on the way, as the test decides.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use ylock_core::environment::{Environment, Moment};
use ylock_core::{Error, ErrorKind};
use ylock_engine_etcd::algorithm::store::{
    Condition, Done, Entry, Fault, Granted, Header, KeyEvent, Keys, Look, Outcome, Pending, Put, Seen, Step,
    Store, Transaction, Watching,
};

/// What becomes of a transaction that writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is carried out, and answered.
    Answered,
    /// It is carried out, and the answer is lost.
    AnswerLost,
    /// It is on its way until the test [delivers](Fake::deliver) it, and its client is told that no answer came.
    Late,
}

pub(crate) struct Fake {
    environment: Arc<dyn Environment>,
    state: Mutex<State>,
    /// How long the answer takes that grants the next lease.
    grants_take: Mutex<Duration>,
}

#[derive(Default)]
struct State {
    revision: i64,
    keys: BTreeMap<Vec<u8>, Entry>,
    /// With its time to live, its end, and when it was made.
    leases: HashMap<i64, (Duration, Moment, Moment)>,
    watches: Vec<(Vec<u8>, bool, oneshot::Sender<KeyEvent>)>,
    fates: VecDeque<Fate>,
    late: Vec<Transaction>,
    asked: Vec<&'static str>,
}

impl Fake {
    pub(crate) fn new(environment: &Arc<dyn Environment>) -> Arc<Self> {
        let state = State { revision: 1, ..State::default() };
        let environment = Arc::clone(environment);
        Arc::new(Self { environment, state: Mutex::new(state), grants_take: Mutex::default() })
    }

    /// The next transaction that puts a key under a lease, or deletes one, has this fate.
    pub(crate) fn next_is(&self, fate: Fate) {
        self.state.lock().fates.push_back(fate);
    }

    /// The next lease counts from now, and the answer takes so long.
    pub(crate) fn next_lease_is_answered_after(&self, takes: Duration) {
        *self.grants_take.lock() = takes;
    }

    /// Carries out what was late. Returns for each whether its conditions held.
    pub(crate) fn deliver(&self) -> Vec<bool> {
        let mut state = self.state.lock();
        let late = std::mem::take(&mut state.late);
        late.into_iter().map(|one| state.transact(one).is_ok_and(|outcome| outcome.held)).collect()
    }

    /// The times to live of the leases that are there.
    pub(crate) fn lease_times(&self) -> Vec<Duration> {
        self.state.lock().leases.values().map(|(ttl, ..)| *ttl).collect()
    }

    /// Ends all leases at once, with their keys.
    pub(crate) fn end_leases(&self) {
        let mut state = self.state.lock();
        for lease in std::mem::take(&mut state.leases).into_keys() {
            state.end(lease);
        }
    }

    /// Ends the leases that were made at least their time to live ago, whatever has prolonged them since: what a leader does that stood still, was replaced
    /// meanwhile, and goes on.
    pub(crate) fn end_as_a_deposed_leader(&self) {
        let (mut state, now) = (self.state.lock(), self.environment.now());
        let is_old = |made: &Moment, ttl: &Duration| now.since(*made) >= *ttl;
        let ended: Vec<_> =
            state.leases.iter().filter(|(_, (ttl, _, made))| is_old(made, ttl)).map(|(id, _)| *id).collect();
        for lease in ended {
            state.leases.remove(&lease);
            state.end(lease);
        }
    }

    /// Forgets all that is stored, and begins again with the first revision, under the same id.
    pub(crate) fn set_up_anew(&self) {
        let mut state = self.state.lock();
        (state.keys, state.leases) = Default::default();
        state.revision = 1;
    }

    /// Puts a key, as another program does.
    pub(crate) fn put(&self, key: &str) {
        let put = Put { key: key.into(), value: Vec::new(), lease: None };
        self.state.lock().step(Step::Put(put));
    }

    /// Puts a value into a key, as an operator does.
    pub(crate) fn say(&self, key: &str, value: &str) {
        let put = Put { key: key.into(), value: value.into(), lease: Some(0) };
        self.state.lock().step(Step::Put(put));
    }

    /// Returns how many leases there are.
    pub(crate) fn leases(&self) -> usize {
        self.state.lock().leases.len()
    }

    /// What is asked from now on is carried out, and answered.
    pub(crate) fn forget_fates(&self) {
        self.state.lock().fates.clear();
    }

    /// Ends a lease with its keys, as an operator does.
    pub(crate) fn end_lease(&self, lease: i64) {
        let mut state = self.state.lock();
        state.leases.remove(&lease);
        state.end(lease);
    }

    /// The lease that was made last.
    pub(crate) fn youngest_lease(&self) -> i64 {
        *self.state.lock().leases.keys().max().expect("there is one")
    }

    /// Ends what is over by now.
    pub(crate) fn pass(&self) {
        self.expire(&mut self.state.lock());
    }

    /// Deletes a key, as an operator does.
    pub(crate) fn delete(&self, key: &str) {
        let mut state = self.state.lock();
        state.revision += 1;
        state.delete(key.as_bytes());
    }

    /// Deletes a key and puts it again with the same value, under the same lease, as the next contender of its client does that has the same key.
    pub(crate) fn make_again(&self, key: &str) {
        let mut state = self.state.lock();
        let entry = state.keys.remove(key.as_bytes()).expect("it is there");
        state.revision += 1;
        let revision = state.revision;
        state.keys.insert(entry.key.clone(), Entry { made: revision, changed: revision, ..entry });
    }

    /// The lease that a key belongs to.
    pub(crate) fn lease_of(&self, key: &str) -> i64 {
        self.state.lock().keys[key.as_bytes()].lease
    }

    pub(crate) fn revision(&self) -> i64 {
        self.state.lock().revision
    }

    /// The watches of a key are told that it was deleted at this revision: by a member that is behind, so that they began before it.
    pub(crate) fn tell_of_deletion(&self, key: &str, revision: i64) {
        self.state.lock().tell(key.as_bytes(), true, revision);
    }

    /// The keys that contain this text.
    pub(crate) fn keys(&self, part: &str) -> Vec<String> {
        let state = self.state.lock();
        let keys = state.keys.keys().map(|key| String::from_utf8(key.clone()).unwrap());
        keys.filter(|key| key.contains(part)).collect()
    }

    /// What was asked since the last call, one word for each request.
    pub(crate) fn asked(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.state.lock().asked)
    }

    fn expire(&self, state: &mut State) {
        let now = self.environment.now();
        let ended: Vec<_> =
            state.leases.iter().filter(|(_, (_, end, _))| *end <= now).map(|(id, _)| *id).collect();
        for lease in ended {
            state.leases.remove(&lease);
            state.end(lease);
        }
    }

    fn with<T>(&self, word: &'static str, work: impl FnOnce(&mut State, Moment) -> T) -> T {
        let mut state = self.state.lock();
        self.expire(&mut state);
        state.asked.push(word);
        work(&mut state, self.environment.now())
    }
}

impl State {
    fn header(&self) -> Header {
        Header { cluster: 1, member: 1, revision: self.revision }
    }

    fn end(&mut self, lease: i64) {
        let keys: Vec<_> =
            self.keys.values().filter(|entry| entry.lease == lease).map(|e| e.key.clone()).collect();
        self.revision += 1;
        for key in keys {
            self.delete(&key);
        }
    }

    fn delete(&mut self, key: &[u8]) -> bool {
        let was_there = self.keys.remove(key).is_some();
        if was_there {
            self.tell(key, true, self.revision);
        }
        was_there
    }

    fn tell(&mut self, key: &[u8], deleted: bool, revision: i64) {
        let (told, rest) = std::mem::take(&mut self.watches)
            .into_iter()
            .partition(|(watched, changes, _)| watched == key && (deleted || *changes));
        self.watches = rest;
        let told: Vec<(Vec<u8>, bool, oneshot::Sender<KeyEvent>)> = told;
        for (_, _, tell) in told {
            let _ = tell.send(KeyEvent { is_deletion: deleted, revision });
        }
    }

    fn holds(&self, condition: &Condition) -> bool {
        match condition {
            Condition::MadeAt(keys, 0) => self.within(keys).next().is_none(),
            Condition::MadeAt(keys, revision) => {
                self.within(keys).all(|entry| entry.made == *revision) && self.within(keys).next().is_some()
            }
            Condition::ChangedAt(key, revision) => {
                self.keys.get(key).map_or(0, |entry| entry.changed) == *revision
            }
        }
    }

    fn within(&self, keys: &Keys) -> impl Iterator<Item = &Entry> {
        let end = keys.end.clone().map_or_else(|| Bound::Included(keys.begin.clone()), Bound::Excluded);
        self.keys.range((Bound::Included(keys.begin.clone()), end)).map(|(_, entry)| entry)
    }

    fn transact(&mut self, transaction: Transaction) -> Result<Outcome, Fault> {
        let held = transaction.when.iter().all(|condition| self.holds(condition));
        let steps = if held { transaction.then } else { transaction.otherwise };
        let leases = steps.iter().filter_map(|step| match step {
            Step::Put(Put { lease: Some(lease), .. }) if *lease != 0 => Some(*lease),
            _ => None,
        });
        if leases.clone().any(|lease| !self.leases.contains_key(&lease)) {
            return Err(Fault::LeaseGone);
        }
        if steps.iter().any(|step| !matches!(step, Step::Look(_))) {
            self.revision += 1;
        }
        let done = steps.into_iter().map(|step| self.step(step)).collect();
        Ok(Outcome { header: self.header(), held, done })
    }

    fn step(&mut self, step: Step) -> Done {
        match step {
            Step::Put(Put { key, value, lease }) => {
                let known = self.keys.get(&key).map(|entry| (entry.made, entry.lease));
                let made = known.map_or(self.revision, |(made, _)| made);
                let lease = lease.unwrap_or(known.map_or(0, |(_, lease)| lease));
                self.keys.insert(
                    key.clone(),
                    Entry { key: key.clone(), value, made, changed: self.revision, lease },
                );
                self.tell(&key, false, self.revision);
                Done::Put
            }
            Step::Delete(key) => Done::Deleted(i64::from(self.delete(&key))),
            Step::Look(look) => Done::Looked(self.look(&look)),
        }
    }

    fn look(&self, look: &Look) -> Seen {
        let mut entries: Vec<_> = self
            .within(&look.keys)
            .filter(|entry| look.made_before.is_none_or(|before| entry.made < before))
            .filter(|entry| look.made_after.is_none_or(|after| entry.made > after))
            .cloned()
            .collect();
        if look.newest_first {
            entries.sort_by_key(|entry| std::cmp::Reverse(entry.made));
        }
        let most = if look.most == 0 { usize::MAX } else { look.most as usize };
        let more = entries.len() > most;
        entries.truncate(most);
        if !look.values {
            entries.iter_mut().for_each(|entry| entry.value.clear());
        }
        Seen { entries, more }
    }
}

impl Store for Fake {
    fn transact(&self, transaction: Transaction) -> Pending<'_, Outcome> {
        Box::pin(async move {
            let puts =
                transaction.then.iter().any(|step| matches!(step, Step::Put(Put { lease: Some(1..), .. })));
            // What deletes a key that is never there has no condition.
            let deletes = transaction.then.iter().any(|step| matches!(step, Step::Delete(_)));
            let writes = puts || deletes && !transaction.when.is_empty();
            let word = match (puts, deletes) {
                (true, _) => "put",
                (false, true) if transaction.when.is_empty() => "nothing",
                _ => "transaction",
            };
            self.with(word, |state, _| match if writes { state.fates.pop_front() } else { None } {
                None | Some(Fate::Answered) => state.transact(transaction),
                Some(Fate::AnswerLost) => {
                    drop(state.transact(transaction));
                    Err(silence())
                }
                Some(Fate::Late) => {
                    state.late.push(transaction);
                    Err(silence())
                }
            })
        })
    }

    fn grant(&self, seconds: i64) -> Pending<'_, Granted> {
        Box::pin(async move {
            let takes = std::mem::take(&mut *self.grants_take.lock());
            let granted = self.with("grant", |state, now| {
                state.revision += 1;
                let (lease, ttl) = (state.revision, Duration::from_secs(seconds as u64));
                state.leases.insert(lease, (ttl, now.plus(ttl), now));
                Granted { header: state.header(), lease, seconds }
            });
            self.environment.sleep(takes).await;
            Ok(granted)
        })
    }

    fn revoke(&self, lease: i64) -> Pending<'_, ()> {
        Box::pin(async move {
            self.with("revoke", |state, _| {
                state.leases.remove(&lease);
                state.end(lease);
            });
            Ok(())
        })
    }

    fn watch(&self, key: Vec<u8>, changes: bool) -> Pending<'_, Watching> {
        Box::pin(async move {
            let (tell, told) = oneshot::channel();
            let since = self.with("watch", |state, _| {
                state.watches.push((key, changes, tell));
                state.revision
            });
            Ok(Watching { since, told, guard: Box::new(()) })
        })
    }
}

fn silence() -> Fault {
    Fault::Unknown(Error::new(ErrorKind::Unavailable, "no answer came"))
}

impl fmt::Debug for Fake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fake")
    }
}

/// The servers as an engine has them.
#[derive(Debug)]
pub(crate) struct Servers(pub(crate) Arc<Fake>);

impl Store for Servers {
    fn transact(&self, transaction: Transaction) -> Pending<'_, Outcome> {
        self.0.transact(transaction)
    }

    fn grant(&self, seconds: i64) -> Pending<'_, Granted> {
        self.0.grant(seconds)
    }

    fn revoke(&self, lease: i64) -> Pending<'_, ()> {
        self.0.revoke(lease)
    }

    fn watch(&self, key: Vec<u8>, changes: bool) -> Pending<'_, Watching> {
        self.0.watch(key, changes)
    }
}
