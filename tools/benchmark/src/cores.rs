//! A simulated machine whose cores are shared by all nodes and clients, as where a cluster and its
//! clients are measured on one: a request waits for a core, and a read takes longer the more rows it
//! has to show.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use ylock_core::engine::AcquisitionId;
use ylock_core::environment::{Environment, Moment};
use ylock_core::{Key, Result};
use ylock_engine_cassandra::algorithm::store::{LastTokens, Page, Partition, Slot, Store, Write};

/// What requests take of a core, over all replicas and the client.
const WRITE: Duration = Duration::from_micros(800);
const READ: Duration = Duration::from_micros(500);
const READ_A_ROW: Duration = Duration::from_micros(25);

/// The cores of one machine, each with the moment from which on it is free.
#[derive(Debug)]
pub(crate) struct Cores(Mutex<Vec<Moment>>);

impl Cores {
    pub(crate) fn new(count: u32) -> Arc<Self> {
        Arc::new(Self(Mutex::new(vec![Moment::ZERO; count.max(1) as usize])))
    }

    /// Returns how long it takes to compute for `time`, with the wait for a core.
    fn take(&self, time: Duration, now: Moment) -> Duration {
        let mut all = self.0.lock();
        let first = all.iter_mut().min().expect("there is one at least");
        *first = (*first).max(now).plus(time);
        first.since(now)
    }
}

/// A store whose requests need a core.
#[derive(Debug)]
pub(crate) struct Computing {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) environment: Arc<dyn Environment>,
    pub(crate) cores: Arc<Cores>,
}

impl Computing {
    async fn compute(&self, time: Duration) {
        let time = self.cores.take(time, self.environment.now());
        self.environment.sleep(time).await;
    }
}

#[async_trait]
impl Store for Computing {
    async fn write(&self, key: &Key, slot: Slot, write: &Write) -> Result<()> {
        self.compute(WRITE).await;
        self.store.write(key, slot, write).await
    }

    async fn read(&self, key: &Key) -> Result<Partition> {
        self.compute(READ).await;
        let look = self.store.read(key).await?;
        self.compute(READ_A_ROW * look.rows.len() as u32).await;
        Ok(look)
    }

    async fn read_last_tokens(&self, key: &Key) -> Result<LastTokens> {
        self.compute(READ + READ_A_ROW).await;
        self.store.read_last_tokens(key).await
    }

    async fn keys(&self, after: Option<i64>) -> Result<Page> {
        self.store.keys(after).await
    }

    async fn revoke(&self, key: &Key, slot: Slot, id: AcquisitionId, stamp: i64, ttl: u32) -> Result<()> {
        self.compute(WRITE).await;
        self.store.revoke(key, slot, id, stamp, ttl).await
    }

    async fn bury(&self, key: &Key, slot: Slot, heartbeat: i64) -> Result<()> {
        self.compute(WRITE).await;
        self.store.bury(key, slot, heartbeat).await
    }

    async fn erase(&self, key: &Key, slot: Slot, stamp: i64) -> Result<()> {
        self.compute(WRITE).await;
        self.store.erase(key, slot, stamp).await
    }
}
