//! Mistakes that can be made between the algorithm and the store.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use ylock_core::engine::{AcquisitionId, Engine, Ticket};
use ylock_core::environment::Environment;
use ylock_core::{Key, Result};
use ylock_engine_cassandra::algorithm::store::{
    LastTokens, Page, Partition, SeenRow, Slot, State, Store, Write,
};
use ylock_engine_cassandra::{CassandraEngine, CassandraOptions};
use ylock_simulation::clocks::Clocks;
use ylock_simulation::store::Connection;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Defect {
    /// One claim in the main row: it must be mine. As in the thesis, a write that timed out counts as done.
    CountsOnly,
    /// My row is as I wrote it, whatever the look shows. As in the thesis, a write that timed out counts as done.
    TrustsItselfInDoubt,
    /// My row is as I wrote it, whatever the look shows.
    TrustsItself,
    /// Write timestamps of whole seconds.
    OneStampForTwo,
    /// A write that timed out counts as done.
    ForgetsDoubt,
    /// Rows live no longer than their lease.
    TtlIsLease,
    /// A heartbeat of the waiting row, decided before the claim, gets its timestamp after it.
    LateHeartbeat,
    /// A write in doubt is sent again with the timestamp that it had.
    OneStampForTwoAttempts,
    /// Places in the queue by the own clock, whatever was seen.
    OwnTimeOnly,
}

#[derive(Debug)]
pub(crate) struct Broken {
    inner: Arc<Connection>,
    clocks: Arc<Clocks>,
    defect: Defect,
    last: Mutex<HashMap<Key, (Slot, Write)>>,
    /// The keys whose last write has an unknown outcome.
    in_doubt: Mutex<HashSet<Key>>,
}

impl Broken {
    pub(crate) fn new(inner: Arc<Connection>, clocks: &Arc<Clocks>, defect: Defect) -> Self {
        Self { inner, clocks: Arc::clone(clocks), defect, last: Mutex::default(), in_doubt: Mutex::default() }
    }

    fn last(&self, key: &Key) -> Option<(Slot, Write)> {
        self.last.lock().get(key).filter(|(_, write)| write.row.state != State::Idle).cloned()
    }

    /// The timestamp of the last write, if that is in doubt and says the same.
    fn stamp_of_the_first(&self, key: &Key, write: &Write) -> i64 {
        let last = self.last.lock().get(key).cloned();
        let is_same = |last: &Write| Write { stamp: last.stamp, ..write.clone() } == *last;
        match last {
            Some((_, last)) if self.in_doubt.lock().contains(key) && is_same(&last) => last.stamp,
            _ => write.stamp,
        }
    }

    /// The place by the own clock: the one that this acquisition has already, or a new one.
    fn own_time(&self, key: &Key, write: &Write) -> Ticket {
        match self.last(key).filter(|(_, last)| last.row.acquisition == write.row.acquisition) {
            Some((_, last)) => last.row.ticket,
            None => Ticket::from_number(self.clocks.wall_micros()),
        }
    }

    /// What the look would show if the own row were as it was last written.
    fn show_own(&self, look: &mut Partition, key: &Key) {
        let Some((slot, write)) = self.last(key) else { return };
        let own = look.rows.iter().position(|seen| seen.slot == slot).map(|index| look.rows.remove(index));
        let (claim, claim_stamp, revoked) =
            own.map_or((None, None, None), |own| (own.claim, own.claim_stamp, own.revoked));
        let heartbeat = Some(write.stamp);
        let claim_stamp = write.claim.map(|_| write.stamp).or(claim_stamp);
        let claim = write.claim.map(|timed| timed.claim).or(claim);
        look.rows.push(SeenRow { slot, row: Some(write.row), heartbeat, claim, claim_stamp, revoked });
    }

    fn count(&self, look: &mut Partition, key: &Key) {
        let is_main = |seen: &SeenRow| {
            seen.row.as_ref().is_some_and(|row| matches!(row.state, State::Claimed | State::Held))
        };
        let has_claimed = self.last(key).is_some_and(|(_, write)| write.row.state == State::Claimed);
        if has_claimed && look.rows.iter().filter(|seen| is_main(seen)).count() == 1 {
            look.rows.retain(|seen| !is_main(seen));
            self.show_own(look, key);
        }
    }

    fn heartbeat(&self, key: &Key, slot: Slot, before: Option<(Slot, Write)>, claim: &Write) {
        let Some((_, waiting)) = before.filter(|(_, write)| write.row.state == State::Waiting) else {
            return;
        };
        let late = Write { stamp: claim.stamp + 1, ..waiting };
        let (inner, key) = (Arc::clone(&self.inner), key.clone());
        self.clocks.spawn(Box::pin(async move { drop(inner.write(&key, slot, &late).await) }));
    }
}

#[async_trait]
impl Store for Broken {
    async fn write(&self, key: &Key, slot: Slot, write: &Write) -> Result<()> {
        let mut write = write.clone();
        match self.defect {
            Defect::OneStampForTwo => write.stamp -= write.stamp % 1_000_000,
            Defect::TtlIsLease => write.row_ttl = u32::try_from(write.row.lease.as_secs()).unwrap(),
            Defect::OwnTimeOnly => write.row.ticket = self.own_time(key, &write),
            _ => {}
        }
        if self.defect == Defect::OneStampForTwoAttempts {
            write.stamp = self.stamp_of_the_first(key, &write);
        }
        let before = self.last.lock().insert(key.clone(), (slot, write.clone()));
        self.in_doubt.lock().insert(key.clone());
        let outcome = self.inner.write(key, slot, &write).await;
        if outcome.is_ok() {
            self.in_doubt.lock().remove(key);
        }
        match self.defect {
            Defect::ForgetsDoubt | Defect::CountsOnly | Defect::TrustsItselfInDoubt => return Ok(()),
            Defect::LateHeartbeat if write.row.state == State::Claimed => {
                self.heartbeat(key, slot, before, &write)
            }
            _ => {}
        }
        outcome
    }

    async fn read(&self, key: &Key) -> Result<Partition> {
        let mut look = self.inner.read(key).await?;
        match self.defect {
            Defect::CountsOnly => self.count(&mut look, key),
            Defect::TrustsItself | Defect::TrustsItselfInDoubt => self.show_own(&mut look, key),
            _ => {}
        }
        Ok(look)
    }

    async fn read_last_tokens(&self, key: &Key) -> Result<LastTokens> {
        self.inner.read_last_tokens(key).await
    }

    async fn keys(&self, after: Option<i64>) -> Result<Page> {
        self.inner.keys(after).await
    }

    async fn revoke(&self, key: &Key, slot: Slot, id: AcquisitionId, stamp: i64, ttl: u32) -> Result<()> {
        self.inner.revoke(key, slot, id, stamp, ttl).await
    }

    async fn bury(&self, key: &Key, slot: Slot, heartbeat: i64) -> Result<()> {
        self.inner.bury(key, slot, heartbeat).await
    }

    async fn erase(&self, key: &Key, slot: Slot, stamp: i64) -> Result<()> {
        self.inner.erase(key, slot, stamp).await
    }
}

pub(crate) fn broken_store(
    defect: Defect,
) -> impl Fn(Arc<Connection>, &Arc<Clocks>, &CassandraOptions) -> Arc<dyn Engine> {
    move |connection, clocks, options| {
        let store: Arc<dyn Store> = Arc::new(Broken::new(connection, clocks, defect));
        Arc::new(CassandraEngine::over(store, Arc::clone(clocks) as Arc<dyn Environment>, options))
    }
}
