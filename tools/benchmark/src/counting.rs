//! Counts what a client asks of its store, whichever store that is.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use ylock_core::engine::AcquisitionId;
use ylock_core::{Key, Result};
use ylock_engine_cassandra::algorithm::store::{LastTokens, Page, Partition, Slot, Store, Write};

/// A store that counts; see the [module](self).
#[derive(Debug)]
pub(crate) struct Counting {
    pub(crate) store: Arc<dyn Store>,
    /// Shared by all contenders of a point.
    pub(crate) requests: Arc<AtomicU64>,
}

impl Counting {
    fn count(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }
}

#[async_trait]
impl Store for Counting {
    async fn write(&self, key: &Key, slot: Slot, write: &Write) -> Result<()> {
        self.count();
        self.store.write(key, slot, write).await
    }

    async fn read(&self, key: &Key) -> Result<Partition> {
        self.count();
        self.store.read(key).await
    }

    async fn read_last_tokens(&self, key: &Key) -> Result<LastTokens> {
        self.count();
        self.store.read_last_tokens(key).await
    }

    async fn keys(&self, after: Option<i64>) -> Result<Page> {
        self.count();
        self.store.keys(after).await
    }

    async fn revoke(&self, key: &Key, slot: Slot, id: AcquisitionId, stamp: i64, ttl: u32) -> Result<()> {
        self.count();
        self.store.revoke(key, slot, id, stamp, ttl).await
    }

    async fn bury(&self, key: &Key, slot: Slot, heartbeat: i64) -> Result<()> {
        self.count();
        self.store.bury(key, slot, heartbeat).await
    }

    async fn erase(&self, key: &Key, slot: Slot, stamp: i64) -> Result<()> {
        self.count();
        self.store.erase(key, slot, stamp).await
    }
}
