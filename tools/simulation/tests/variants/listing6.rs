//! Listings 6 and 7 of the thesis exactly as they are printed, with section 5.3's lease: cells live for the lease and are
//! rewritten, timestamps are those of the wall clock, and what a write answered is not looked at.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use ylock_core::engine::{
    AcquisitionId, Engine, Grant, Holding, Inspection, KeyPage, Meter, Patience, Release, Renewal, Request,
    Ticket,
};
use ylock_core::environment::Environment;
use ylock_core::{ClientName, Guarantees, JobRun, Key, Mode, Options, Result, StoreToken};
use ylock_engine_cassandra::CassandraOptions;
use ylock_engine_cassandra::algorithm::store::{Partition, Row, Slot, State, Store, Write};
use ylock_simulation::clocks::Clocks;
use ylock_simulation::store::Connection;

#[derive(Debug)]
struct Listing6 {
    store: Arc<Connection>,
    clocks: Arc<Clocks>,
    slot: Slot,
    rows: Mutex<HashMap<Key, Row>>,
    meter: Meter,
}

pub(crate) fn make(
    connection: Arc<Connection>,
    clocks: &Arc<Clocks>,
    _: &CassandraOptions,
) -> Arc<dyn Engine> {
    let environment: Arc<dyn Environment> = Arc::clone(clocks) as _;
    let slot = Slot::from_u128(environment.random_identity());
    let (clocks, rows, meter) = (Arc::clone(clocks), Mutex::default(), Meter::default());
    Arc::new(Listing6 { store: connection, clocks, slot, rows, meter })
}

impl Listing6 {
    async fn write(&self, key: &Key, row: Row) {
        self.rows.lock().insert(key.clone(), row.clone());
        let row_ttl = u32::try_from(row.lease.as_secs()).unwrap();
        let write = Write { stamp: self.clocks.wall_micros(), row, row_ttl, claim: None, used: None };
        drop(self.store.write(key, self.slot, &write).await);
    }

    async fn look(&self, key: &Key) -> Partition {
        loop {
            if let Ok(look) = self.store.read(key).await {
                return look;
            }
        }
    }

    fn is_first(&self, look: &Partition) -> bool {
        let queue = look.rows.iter().filter_map(|seen| Some((seen.slot, seen.row.as_ref()?)));
        let queue = queue.filter(|(_, row)| row.state != State::Idle);
        queue.min_by_key(|(slot, row)| (row.ticket, *slot)).is_some_and(|(slot, _)| slot == self.slot)
    }

    fn row(&self, request: &Request) -> Row {
        Row {
            acquisition: request.id,
            mode: Mode::Write,
            state: State::Waiting,
            ticket: self.ticket(),
            owner: request.owner,
            client: ClientName::default(),
            since: 0,
            lease: request.lease,
            next: None,
            hints: None,
        }
    }

    fn grant(&self, request: &Request) -> Grant {
        let token = StoreToken::new(u64::try_from(self.clocks.wall_micros()).unwrap());
        Grant::of(request, token, self.clocks.now(), false).with_mode(Mode::Write)
    }
}

fn in_main_row(look: &Partition) -> usize {
    look.rows.iter().filter_map(|seen| seen.row.as_ref()).filter(|row| row.state == State::Claimed).count()
}

#[async_trait]
impl Engine for Listing6 {
    fn name(&self) -> &'static str {
        "listing 6"
    }

    fn guarantees(&self) -> Guarantees {
        Guarantees::NONE
            .with_exclusive(true)
            .with_fair(true)
            .with_fencing(true)
            .with_shared_reads(true)
            .with_durable(true)
            .with_exclusive_after_failover(true)
    }

    fn environment(&self) -> Arc<dyn Environment> {
        Arc::clone(&self.clocks) as _
    }

    fn check(&self, _: &Options) -> Result<()> {
        Ok(())
    }

    fn ticket(&self) -> Ticket {
        Ticket::from_number(self.clocks.wall_micros())
    }

    fn meter(&self) -> &Meter {
        &self.meter
    }

    fn in_memory(&self) -> Vec<(&'static str, usize)> {
        Vec::new()
    }

    async fn acquire(&self, request: &Request) -> Result<Option<Grant>> {
        let key = &request.key;
        if request.patience == Patience::Try && in_main_row(&self.look(key).await) > 0 {
            return Ok(None);
        }
        let row = self.row(request);
        self.write(key, row.clone()).await; // 1
        loop {
            if self.is_first(&self.look(key).await) {
                let grant = self.grant(request);
                self.write(key, Row { state: State::Claimed, ..row.clone() }).await; // 3
                if in_main_row(&self.look(key).await) == 1 {
                    return Ok(Some(grant)); // 4, 5
                }
                self.write(key, row.clone()).await; // 7
            } else if request.patience == Patience::Try {
                self.write(key, Row { state: State::Idle, ..row }).await;
                return Ok(None);
            }
            self.clocks.sleep(Duration::from_millis(50)).await;
        }
    }

    async fn renew(&self, holdings: &[Holding]) -> Vec<Result<Renewal>> {
        let mut answers = Vec::new();
        for Holding { grant, .. } in holdings {
            let sent = self.clocks.now();
            let row = self.rows.lock().get(&grant.key).cloned();
            if let Some(row) = row {
                self.write(&grant.key, row).await;
            }
            answers.push(Ok(Renewal::Renewed { sent, contended: false }));
        }
        answers
    }

    async fn release(&self, key: &Key, _: AcquisitionId, _: Option<&Request>) -> Result<Release> {
        let row = self.rows.lock().get(key).cloned();
        if let Some(row) = row {
            self.write(key, Row { state: State::Idle, ..row }).await;
        }
        Ok(Release::Released)
    }

    async fn inspect(&self, _: &Key) -> Result<Inspection> {
        Ok(Inspection::default())
    }

    async fn keys(&self, _: Option<&str>, _: Option<&str>) -> Result<KeyPage> {
        Ok(KeyPage::default())
    }

    async fn revoke(&self, _: &Key, _: AcquisitionId) -> Result<bool> {
        Ok(false)
    }

    async fn last_run(&self, _: &Key) -> Result<Option<JobRun>> {
        Ok(None)
    }

    async fn store_run(&self, _: &Key, _: &JobRun, _: Duration) -> Result<bool> {
        Ok(false)
    }

    async fn close(&self) -> Result<()> {
        Ok(())
    }
}
