//! Mistakes that can be made around the algorithm.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use ylock_core::engine::{Engine, Grant, Holding, Renewal, Request, Ticket};
use ylock_core::environment::{BoxFuture, Environment, Moment, RuntimeId};
use ylock_core::{ClientName, Key, Mode, Result, StoreToken};
use ylock_engine_cassandra::algorithm::store::{Claim, Row, Slot, State, Store, TimedClaim, Write};
use ylock_engine_cassandra::{CassandraEngine, CassandraOptions};
use ylock_simulation::clocks::Clocks;
use ylock_simulation::store::Connection;
use ylock_testkit::{Wrapped, Wrapper};

use crate::store::{Broken as BrokenStore, Defect as StoreDefect};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Defect {
    /// The lease counts from the answer, not from before the request.
    ValidFromAnswer,
    /// A renewal looks neither at its row nor at the time.
    RenewsLate,
    /// The token is one more than that of the last holder, read after entry.
    TokenAfterEntry,
    /// A renewal that finds out about a loss clears the row before it says so.
    GivesAwayBeforeTelling,
}

#[derive(Debug)]
struct Broken {
    inner: CassandraEngine,
    connection: Arc<Connection>,
    clocks: Arc<Clocks>,
    defect: Defect,
}

pub(crate) fn broken_engine(
    defect: Defect,
) -> impl Fn(Arc<Connection>, &Arc<Clocks>, &CassandraOptions) -> Arc<dyn Engine> {
    move |connection, clocks, options| {
        let store: Arc<dyn Store> = match defect {
            Defect::RenewsLate => {
                Arc::new(BrokenStore::new(Arc::clone(&connection), clocks, StoreDefect::TrustsItself))
            }
            _ => Arc::clone(&connection) as _,
        };
        let inner = CassandraEngine::over(store, Arc::clone(clocks) as _, options);
        Arc::new(Wrapped(Broken { inner, connection, clocks: Arc::clone(clocks), defect }))
    }
}

impl Broken {
    /// Reads the last token, writes one more.
    async fn take_token(&self, grant: &Grant) -> Result<StoreToken> {
        let key = Key::new("tokens", grant.key.name())?;
        let token = loop {
            if let Ok(look) = self.connection.read(&key).await {
                break StoreToken::new(look.last_write.map_or(1, |last| last.get() + 1)).unwrap();
            }
        };
        let claim = Claim { token, mode: Mode::Write };
        let row = Row {
            acquisition: grant.id,
            mode: Mode::Write,
            state: State::Idle,
            ticket: Ticket::from_number(0),
            owner: grant.owner,
            client: ClientName::default(),
            since: 0,
            lease: grant.lease,
            next: None,
            hints: None,
        };
        let used = Some(TimedClaim { claim, ttl: 600_000 });
        let write = Write { stamp: self.clocks.wall_micros(), row, row_ttl: 1, claim: None, used };
        while self.connection.write(&key, Slot::from_u128(1), &write).await.is_err() {}
        Ok(token)
    }

    async fn renew_one(&self, holding: &Holding) -> Result<Renewal> {
        let mut holding = holding.clone();
        if self.defect == Defect::RenewsLate {
            holding.grant.sent = self.clocks.now();
        }
        let answer = self.inner.renew(std::slice::from_ref(&holding)).await.remove(0)?;
        match (self.defect, answer) {
            (Defect::ValidFromAnswer, Renewal::Renewed { contended, .. }) => {
                Ok(Renewal::Renewed { sent: self.clocks.now(), contended })
            }
            (Defect::GivesAwayBeforeTelling, Renewal::Lost(_)) => {
                drop(self.inner.release(&holding.grant.key, holding.grant.id, None).await);
                Ok(answer)
            }
            _ => Ok(answer),
        }
    }
}

impl Wrapper for Broken {
    fn inner(&self) -> &dyn Engine {
        &self.inner
    }

    fn name(&self) -> &'static str {
        "broken"
    }

    async fn acquire(&self, request: &Request) -> Result<Option<Grant>> {
        let Some(mut grant) = self.inner.acquire(request).await? else { return Ok(None) };
        match self.defect {
            Defect::ValidFromAnswer => grant.sent = self.clocks.now(),
            Defect::TokenAfterEntry => grant.token = Some(self.take_token(&grant).await?),
            _ => {}
        }
        Ok(Some(grant))
    }

    async fn renew(&self, holdings: &[Holding]) -> Vec<Result<Renewal>> {
        let mut answers = Vec::new();
        for holding in holdings {
            answers.push(self.renew_one(holding).await);
        }
        answers
    }
}

/// Every client draws the same slot: a copied machine, a generator without a seed.
pub(crate) fn one_slot(
    connection: Arc<Connection>,
    clocks: &Arc<Clocks>,
    options: &CassandraOptions,
) -> Arc<dyn Engine> {
    let environment = Arc::new(Copied { inner: Arc::clone(clocks), drawn: AtomicU32::new(0) });
    Arc::new(CassandraEngine::over(connection, environment, options))
}

#[derive(Debug)]
struct Copied {
    inner: Arc<Clocks>,
    drawn: AtomicU32,
}

impl Environment for Copied {
    fn now(&self) -> Moment {
        self.inner.now()
    }

    fn wall_micros(&self) -> i64 {
        self.inner.wall_micros()
    }

    fn random(&self) -> u64 {
        // The first two numbers are the slot.
        if self.drawn.fetch_add(1, Ordering::Relaxed) < 2 { 7 } else { self.inner.random() }
    }

    fn sleep(&self, duration: std::time::Duration) -> BoxFuture {
        self.inner.sleep(duration)
    }

    fn spawn(&self, future: BoxFuture) {
        self.inner.spawn(future);
    }

    fn spawn_begun(&self, future: BoxFuture, runtime: RuntimeId) {
        self.inner.spawn_begun(future, runtime);
    }

    fn spawn_for_all(&self, future: BoxFuture) {
        self.inner.spawn_for_all(future);
    }

    fn runs_here(&self) -> bool {
        self.inner.runs_here()
    }

    fn enter(&self) -> bool {
        self.inner.enter()
    }
}
