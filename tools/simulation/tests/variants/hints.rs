//! Mistakes that can be made where clients tell each other to look.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use ylock_core::engine::{AcquisitionId, Engine};
use ylock_core::environment::{Environment, Moment};
use ylock_core::{Key, Result};
use ylock_engine_cassandra::algorithm::store::{
    LastTokens, Page, Partition, SeenRow, Slot, State, Store, Write,
};
use ylock_engine_cassandra::hints::{Carrier, Datagram, Hint, Receiver};
use ylock_engine_cassandra::options::Notify;
use ylock_engine_cassandra::{CassandraEngine, CassandraOptions};
use ylock_simulation::Setting;
use ylock_simulation::clocks::Clocks;
use ylock_simulation::store::{Connection, Wire};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Defect {
    /// A hint that a client has left is believed: the look after it is not made, but taken from the one before.
    BelievesHints,
    /// After a hint the row is not shown again for a third of a lease, whenever that was due.
    ResetsTheHeartbeat,
}

/// A client's way to the store and from other clients.
#[derive(Debug)]
struct Broken {
    inner: Arc<Connection>,
    carrier: Arc<Wire>,
    clocks: Arc<Clocks>,
    defect: Defect,
    was_told: AtomicBool,
    told: AtomicU64,
    last_look: Mutex<Option<(Key, Partition)>>,
    last_write: Mutex<Option<(Key, Slot, Write)>>,
}

/// Hears what the client hears.
struct Ear {
    broken: Weak<Broken>,
    receiver: Weak<dyn Receiver>,
}

impl Receiver for Ear {
    fn receive(&self, from: SocketAddr, bytes: &[u8]) {
        if let (Some(broken), Some((_, hint))) = (self.broken.upgrade(), Hint::read(bytes)) {
            broken.was_told.fetch_or(matches!(hint, Hint::Free { .. }), Ordering::Relaxed);
            broken.told.store(broken.clocks.now().as_nanos(), Ordering::Relaxed);
        }
        if let Some(receiver) = self.receiver.upgrade() {
            receiver.receive(from, bytes);
        }
    }
}

/// What the client of a carrier that is broken listens with; it lives as long as the client.
#[derive(Debug)]
struct Way {
    broken: Arc<Broken>,
    ear: Mutex<Option<Arc<Ear>>>,
}

impl std::fmt::Debug for Ear {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Ear")
    }
}

impl Carrier for Way {
    fn address(&self) -> SocketAddr {
        self.broken.carrier.address()
    }

    fn send(&self, to: SocketAddr, datagram: &Datagram) {
        self.broken.carrier.send(to, datagram);
    }

    fn deliver_to(&self, receiver: Weak<dyn Receiver>) {
        let ear = Arc::new(Ear { broken: Arc::downgrade(&self.broken), receiver });
        let weak: Weak<Ear> = Arc::downgrade(&ear);
        self.broken.carrier.deliver_to(weak);
        *self.ear.lock() = Some(ear);
    }
}

impl Broken {
    /// What the last look has shown, without those that it has shown inside, and with the row as it was written last.
    fn believed(&self, key: &Key) -> Option<Partition> {
        let (looked, mut look) = self.last_look.lock().clone()?;
        let (wrote, slot, write) = self.last_write.lock().clone()?;
        if looked != *key || wrote != *key {
            return None;
        }
        let is_inside = |seen: &SeenRow| seen.row.as_ref().is_some_and(|row| row.state == State::Held);
        look.rows.retain(|seen| seen.slot != slot && !is_inside(seen));
        look.rows.push(SeenRow {
            slot,
            row: Some(write.row.clone()),
            heartbeat: Some(write.stamp),
            claim: write.claim.map(|timed| timed.claim),
            claim_stamp: Some(write.stamp),
            revoked: None,
        });
        Some(look)
    }

    /// Returns whether the write only shows again what is there, less than a third of a lease after a hint.
    fn is_put_off(&self, write: &Write) -> bool {
        let told = Moment::from_nanos(self.told.load(Ordering::Relaxed));
        let is_soon = self.clocks.now().since(told) < write.row.lease / 3;
        let last = self.last_write.lock();
        let is_same = last.as_ref().is_some_and(|(_, _, last)| {
            (last.row.acquisition, last.row.state) == (write.row.acquisition, write.row.state)
                && last.claim.map(|timed| timed.claim) == write.claim.map(|timed| timed.claim)
        });
        is_soon && is_same
    }
}

#[async_trait]
impl Store for Broken {
    async fn write(&self, key: &Key, slot: Slot, write: &Write) -> Result<()> {
        if self.defect == Defect::ResetsTheHeartbeat && self.is_put_off(write) {
            return Ok(());
        }
        self.inner.write(key, slot, write).await?;
        *self.last_write.lock() = Some((key.clone(), slot, write.clone()));
        Ok(())
    }

    async fn read(&self, key: &Key) -> Result<Partition> {
        let is_told = self.was_told.swap(false, Ordering::Relaxed);
        if let Some(look) = self.believed(key).filter(|_| is_told && self.defect == Defect::BelievesHints) {
            self.clocks.sleep(Duration::from_micros(100)).await;
            return Ok(look);
        }
        let look = self.inner.read(key).await?;
        *self.last_look.lock() = Some((key.clone(), look.clone()));
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

fn broken(defect: Defect) -> impl Fn(Arc<Connection>, &Arc<Clocks>, &CassandraOptions) -> Arc<dyn Engine> {
    move |inner, clocks, options| {
        let broken = Arc::new(Broken {
            carrier: inner.carrier(),
            inner,
            clocks: Arc::clone(clocks),
            defect,
            was_told: AtomicBool::new(false),
            told: AtomicU64::new(0),
            last_look: Mutex::default(),
            last_write: Mutex::default(),
        });
        let store = Arc::clone(&broken) as Arc<dyn Store>;
        let engine = CassandraEngine::over(store, Arc::clone(clocks) as Arc<dyn Environment>, options);
        Arc::new(match options.notify() {
            Notify::Udp => engine.with_hints(Arc::new(Way { broken, ear: Mutex::default() }), options),
            _ => engine,
        })
    }
}

fn must_break(variant: &str, at: u64, defect: Defect) {
    let make = broken(defect);
    let setting = Setting { make: &make, notify: true, ..Setting::default() };
    super::must_find(variant, "two valid holders", at, setting);
}

#[test]
fn a_hint_is_believed_without_a_look() {
    must_break("a_hint_is_believed_without_a_look", 0, Defect::BelievesHints);
}

#[test]
fn a_hint_puts_off_the_heartbeat() {
    must_break("a_hint_puts_off_the_heartbeat", 4, Defect::ResetsTheHeartbeat);
}
