//! Mistakes that can be made between the algorithm and a cluster of etcd.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use ylock_core::environment::Environment;
use ylock_core::{Error, ErrorKind};
use ylock_engine_etcd::algorithm::store::{
    Condition, Done, Fault, Granted, Header, KeyEvent, Outcome, Pending, Put, Step, Store, Transaction,
    Watching,
};
use ylock_simulation::clocks::Clocks;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Defect {
    /// A key goes to another lease whatever has become of it since it was read: a late request takes it back to an older one.
    MovesWhatHasChanged,
    /// A renewal that was refused because the key has changed, or gone, is taken as done.
    BelievesRefusedMoves,
    /// A contender enters when the second before it has gone, without a look at the first.
    EntersAfterTheSecond,
    /// What is undone leaves no mark.
    LeavesNoMark,
    /// A contender of which no answer came is taken as not made.
    ForgetsContenders,
    /// A removal of which no answer came is taken as done.
    ForgetsRemovals,
    /// Whatever a watch tells is taken for a deletion that was seen.
    TakesChangesForDeletions,
    /// A watch that has ended is taken for a deletion that was seen.
    TakesSilenceForDeletion,
    /// What happened between a look and the beginning of the watch beside it is not looked for.
    BelievesOldLooks,
    /// What a watch tells counts whenever it happened.
    BelievesOldDeletions,
    /// The token is the place, without a floor.
    TokenIsPlace,
    /// A contender gives its place up by one request, and takes the next one by another.
    GivesWayInTwo,
    /// The etcd lease lives for half of its time.
    LeaseIsShorter,
}

/// Makes this mistake on a client's way to the cluster.
pub(crate) fn broken(defect: Defect) -> impl Fn(Arc<dyn Store>, &Arc<Clocks>) -> Arc<dyn Store> {
    move |inner, clocks| {
        let clocks = Arc::clone(clocks);
        Arc::new(Broken { inner, clocks, defect, known: Mutex::default() })
    }
}

#[derive(Debug)]
struct Broken {
    inner: Arc<dyn Store>,
    clocks: Arc<Clocks>,
    defect: Defect,
    known: Mutex<Known>,
}

/// What the servers have said, for answers that they do not give.
#[derive(Debug, Default)]
struct Known {
    last: Header,
}

impl Broken {
    fn is(&self, defect: Defect) -> bool {
        self.defect == defect
    }

    async fn carry(&self, mut transaction: Transaction) -> Result<Outcome, Fault> {
        let asked = transaction.clone();
        if self.is(Defect::MovesWhatHasChanged) && moves(&asked) {
            transaction.when.clear();
        }
        if self.is(Defect::LeavesNoMark) {
            [&mut transaction.then, &mut transaction.otherwise]
                .into_iter()
                .for_each(|steps| steps.retain(|step| !is_mark(step)));
        }
        if self.is(Defect::GivesWayInTwo) && deletes(&asked) && puts(&asked) {
            let second = Transaction { when: transaction.when.split_off(1), ..transaction.clone() };
            let first = Transaction { then: vec![transaction.then[0].clone()], ..transaction.clone() };
            if self.inner.transact(first).await?.held {
                transaction = second;
            }
        }
        if self.is(Defect::TokenIsPlace) {
            transaction.then.iter_mut().for_each(without_floor);
        }
        match self.inner.transact(transaction).await {
            Ok(outcome) => Ok(self.seen(&asked, outcome)),
            Err(Fault::Unknown(_)) if self.is(Defect::ForgetsContenders) && puts(&asked) => {
                Err(Fault::Refused(Error::new(ErrorKind::Unavailable, "not made")))
            }
            Err(Fault::Unknown(_))
                if self.is(Defect::ForgetsRemovals) && deletes(&asked) && !puts(&asked) =>
            {
                Ok(Outcome { header: self.known.lock().last, held: true, done: vec![Done::Deleted(1)] })
            }
            Err(fault) => Err(fault),
        }
    }

    fn seen(&self, asked: &Transaction, mut outcome: Outcome) -> Outcome {
        self.known.lock().last = outcome.header;
        match self.defect {
            Defect::BelievesRefusedMoves if moves(asked) && !outcome.held => {
                outcome.held = true;
                let puts = asked.then.iter().filter(|step| matches!(step, Step::Put(_))).map(|_| Done::Put);
                outcome.done = puts.chain(outcome.done).collect();
            }
            Defect::EntersAfterTheSecond => {
                asked.then.iter().zip(&mut outcome.done).for_each(|(step, done)| without_first(step, done));
            }
            Defect::LeavesNoMark => {
                let steps = if outcome.held { &asked.then } else { &asked.otherwise };
                for (at, _) in steps.iter().enumerate().filter(|(_, step)| is_mark(step)) {
                    outcome.done.insert(at, Done::Put);
                }
            }
            _ => {}
        }
        outcome
    }
}

/// Returns whether a transaction takes keys to another lease.
fn moves(transaction: &Transaction) -> bool {
    let is_of_change = |condition: &Condition| matches!(condition, Condition::ChangedAt(..));
    puts(transaction) && !transaction.when.is_empty() && transaction.when.iter().all(is_of_change)
}

fn is_mark(step: &Step) -> bool {
    matches!(step, Step::Put(put) if String::from_utf8_lossy(&put.key).contains("/x/"))
}

fn is_contender(step: &Step) -> bool {
    matches!(step, Step::Put(Put { key, lease: Some(1..), .. }) if String::from_utf8_lossy(key).contains("/k/"))
}

fn puts(transaction: &Transaction) -> bool {
    transaction.then.iter().any(is_contender)
}

fn deletes(transaction: &Transaction) -> bool {
    matches!(transaction.then[..], [Step::Delete(_), ..])
}

fn without_floor(step: &mut Step) {
    if let Step::Put(put) = step
        && put.key.ends_with(b"/floor")
    {
        let text = String::from_utf8_lossy(&put.value).into_owned();
        let cluster = text.split(' ').next().unwrap_or_default();
        put.value = format!("{cluster} 0").into_bytes();
    }
}

/// Leaves the nearest of those before a contender out, if there is another one.
fn without_first(step: &Step, done: &mut Done) {
    if let (Step::Look(look), Done::Looked(seen)) = (step, done)
        && look.made_before.is_some()
        && look.newest_first
        && seen.entries.len() > 1
    {
        seen.entries = vec![seen.entries[1].clone()];
        seen.more = false;
    }
}

impl Store for Broken {
    fn transact(&self, transaction: Transaction) -> Pending<'_, Outcome> {
        Box::pin(self.carry(transaction))
    }

    fn grant(&self, seconds: i64) -> Pending<'_, Granted> {
        if !self.is(Defect::LeaseIsShorter) {
            return self.inner.grant(seconds);
        }
        Box::pin(async move {
            let granted = self.inner.grant(seconds / 2).await?;
            Ok(Granted { seconds, ..granted })
        })
    }

    fn revoke(&self, lease: i64) -> Pending<'_, ()> {
        self.inner.revoke(lease)
    }

    fn watch(&self, key: Vec<u8>, changes: bool) -> Pending<'_, Watching> {
        Box::pin(async move {
            let mut watching = self.inner.watch(key, changes).await?;
            if self.is(Defect::BelievesOldLooks) {
                watching.since = 0;
            }
            let [change, silence, old] = [
                Defect::TakesChangesForDeletions,
                Defect::TakesSilenceForDeletion,
                Defect::BelievesOldDeletions,
            ]
            .map(|it| self.is(it));
            if change || silence || old {
                let (tell, told) = oneshot::channel();
                let inner = std::mem::replace(&mut watching.told, told);
                self.clocks.spawn(Box::pin(async move {
                    let gone = KeyEvent { is_deletion: true, revision: i64::MAX };
                    let event = match inner.await {
                        Ok(event) if change || old && event.is_deletion => Some(gone),
                        Ok(event) => Some(event),
                        Err(_) => silence.then_some(gone),
                    };
                    if let Some(event) = event {
                        let _ = tell.send(event);
                    }
                }));
            }
            Ok(watching)
        })
    }
}
