//! Mistakes that can be made where the rows of dead clients are observed and buried.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use ylock_core::engine::{AcquisitionId, Engine};
use ylock_core::environment::{BoxFuture, Environment, Moment, RuntimeId};
use ylock_core::{Key, Result};
use ylock_engine_cassandra::algorithm::store::{
    LastTokens, Page, Partition, SeenRow, Slot, State, Store, Write,
};
use ylock_engine_cassandra::{CassandraEngine, CassandraOptions};
use ylock_simulation::Setting;
use ylock_simulation::clocks::Clocks;
use ylock_simulation::store::Connection;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Defect {
    /// A lease counts from when the first look began.
    CountsFromTheBeginning,
    /// A row is the same as long as its acquisition is.
    ComparesAcquisitions,
    /// A deletion is a second later than the heartbeat that it is to delete.
    BuriesTooMuch,
    /// Looks ask one replica.
    LooksAtOne,
    /// The token is deleted with the row.
    BuriesTheToken,
    /// Every row has the shortest lease, whatever it says.
    CountsAnotherLease,
    /// Rows outlive a skew of two seconds, whatever the servers' clocks show.
    EndsByTtl,
}

/// A client's way to the store, and its clock.
#[derive(Debug)]
struct Broken {
    inner: Arc<Connection>,
    clocks: Arc<Clocks>,
    defect: Defect,
    /// The moment that the clock shows next, once.
    shown: Mutex<Option<Moment>>,
    /// What the looks have really shown, where it is changed.
    heartbeats: Mutex<BTreeMap<Slot, i64>>,
}

impl Broken {
    fn change(&self, seen: &mut SeenRow) {
        let Some(row) = seen.row.as_mut() else { return };
        match self.defect {
            Defect::CountsAnotherLease => row.lease = Duration::from_millis(1_200),
            Defect::ComparesAcquisitions => {
                self.heartbeats.lock().extend(seen.heartbeat.map(|heartbeat| (seen.slot, heartbeat)));
                seen.heartbeat = Some((row.acquisition.as_u128() >> 66) as i64);
            }
            _ => {}
        }
    }
}

#[async_trait]
impl Store for Broken {
    async fn write(&self, key: &Key, slot: Slot, write: &Write) -> Result<()> {
        let mut write = write.clone();
        if self.defect == Defect::EndsByTtl && write.row.state != State::Idle {
            write.row_ttl = write.row.lease.as_secs_f64().ceil() as u32 + 3;
        }
        self.inner.write(key, slot, &write).await
    }

    async fn read(&self, key: &Key) -> Result<Partition> {
        let began = self.clocks.now();
        let look = match self.defect {
            Defect::LooksAtOne => self.inner.read_from_one(key).await,
            _ => self.inner.read(key).await,
        };
        if self.defect == Defect::CountsFromTheBeginning {
            *self.shown.lock() = Some(began);
        }
        let mut look = look?;
        look.rows.iter_mut().for_each(|seen| self.change(seen));
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
        let known = self.heartbeats.lock().get(&slot).copied();
        match self.defect {
            Defect::BuriesTooMuch => self.inner.bury(key, slot, heartbeat + 1_000_000).await,
            Defect::BuriesTheToken => self.inner.erase(key, slot, heartbeat).await,
            _ => self.inner.bury(key, slot, known.unwrap_or(heartbeat)).await,
        }
    }

    async fn erase(&self, key: &Key, slot: Slot, stamp: i64) -> Result<()> {
        self.inner.erase(key, slot, stamp).await
    }
}

impl Environment for Broken {
    fn now(&self) -> Moment {
        self.shown.lock().take().unwrap_or_else(|| self.clocks.now())
    }

    fn wall_micros(&self) -> i64 {
        self.clocks.wall_micros()
    }

    fn random(&self) -> u64 {
        self.clocks.random()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture {
        self.clocks.sleep(duration)
    }

    fn spawn(&self, future: BoxFuture) {
        self.clocks.spawn(future);
    }

    fn spawn_begun(&self, future: BoxFuture, runtime: RuntimeId) {
        self.clocks.spawn_begun(future, runtime);
    }

    fn spawn_for_all(&self, future: BoxFuture) {
        self.clocks.spawn_for_all(future);
    }

    fn runs_here(&self) -> bool {
        self.clocks.runs_here()
    }

    fn enter(&self) -> bool {
        self.clocks.enter()
    }
}

fn broken(defect: Defect) -> impl Fn(Arc<Connection>, &Arc<Clocks>, &CassandraOptions) -> Arc<dyn Engine> {
    move |inner, clocks, options| {
        let broken = Arc::new(Broken {
            inner,
            clocks: Arc::clone(clocks),
            defect,
            shown: Mutex::default(),
            heartbeats: Mutex::default(),
        });
        let (store, environment) = (Arc::clone(&broken) as Arc<dyn Store>, broken as Arc<dyn Environment>);
        Arc::new(CassandraEngine::over(store, environment, options))
    }
}

fn must_break(variant: &str, wrong: &str, at: u64, defect: Defect, change: fn(Setting<'_>) -> Setting<'_>) {
    let make = broken(defect);
    super::must_find(variant, wrong, at, change(Setting { make: &make, ..Setting::default().observed() }));
}

macro_rules! broken_observers {
    ($($test:ident: $defect:ident, $wrong:expr, at $at:literal;)*) => {
        $(
            #[test]
            fn $test() {
                must_break(stringify!($test), $wrong, $at, Defect::$defect, |setting| setting);
            }
        )*
    };
}

broken_observers! {
    an_observer_compares_acquisitions_only: ComparesAcquisitions, "two valid holders", at 0;
    a_burial_hides_later_heartbeats: BuriesTooMuch, "two valid holders", at 130;
    an_observer_asks_one_replica: LooksAtOne, "two valid holders", at 0;
    an_observer_buries_the_token: BuriesTheToken, "the token of", at 16;
    an_observer_counts_another_lease: CountsAnotherLease, "two valid holders", at 0;
    the_ttl_ends_before_the_skew_of_the_clocks: EndsByTtl, "two valid holders", at 2;
}

/// Looks that take long matter where a request may: with a lease of five seconds.
#[test]
fn a_lease_counts_from_the_beginning_of_a_look() {
    must_break(
        "a_lease_counts_from_the_beginning_of_a_look",
        "may rely on it",
        483,
        Defect::CountsFromTheBeginning,
        |setting| Setting { leases: vec![Duration::from_secs(5)], ..setting },
    );
}

#[test]
fn observers_believe_late_renewals() {
    let make = crate::engine::broken_engine(crate::engine::Defect::RenewsLate);
    let setting = Setting { trusting: true, make: &make, ..Setting::default().observed() };
    super::must_find("observers_believe_late_renewals", "two valid holders", 33, setting);
}

/// The margin is a tenth of the lease: it bears clocks that are wrong by 5 %.
#[test]
fn clocks_are_wrong_by_eight_hundredths() {
    let setting = Setting { drift: 8.0, ..Setting::default().observed() };
    super::must_find("clocks_are_wrong_by_eight_hundredths", "may rely on it", 134, setting);
}

/// The client that observes counts from the first attempt, and the holder from the last one.
#[test]
fn observed_attempts_have_one_timestamp() {
    let make = crate::store::broken_store(crate::store::Defect::OneStampForTwoAttempts);
    let setting = Setting { make: &make, ..Setting::default().observed() };
    super::must_find("observed_attempts_have_one_timestamp", "may rely on it", 20, setting);
}
