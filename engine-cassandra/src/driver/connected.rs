//! The session of a client, made anew when the runtime that it lived in has ended.

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::RwLock;
use scylla::client::session::Session;
use scylla::statement::prepared::PreparedStatement;
use tokio::sync::{Mutex, oneshot};
use ylock_core::Result;
use ylock_core::environment::{Environment, Moment};

use super::clocks;
use super::errors::connect;
use super::hedges::Hedges;
use super::nodes::Nodes;
use super::schema;
use super::session::{self, Profiles};
use super::statements::{Preparing, Statements};
use crate::options::{CassandraOptions, Expiry, SchemaMode};

/// The interval at which the task that makes a session notes that it goes on. A request takes longer than this.
const TICK: Duration = Duration::from_millis(10);

/// A session, and what was prepared with it.
pub(super) struct Connected {
    pub(super) session: Arc<Session>,
    pub(super) statements: Statements,
    pub(super) profiles: Profiles,
    /// One end of a channel. The other end is kept by a task of the runtime in which the driver's own tasks live, and is dropped with
    /// them. When this end is dropped, that task ends.
    runtime: oneshot::Sender<Infallible>,
}

/// The present session, and how to make the next one.
#[derive(Debug)]
pub(super) struct Connection {
    how: How,
    present: RwLock<Arc<Connected>>,
    /// The making of the next session, by one task at a time. If the runtime of that task ends in the middle, the next task begins
    /// anew; if that runtime stands still, the task is left behind with its `Making`.
    making: RwLock<Arc<Making>>,
    /// Requests of earlier sessions.
    requests: AtomicU64,
}

/// The making of one session.
#[derive(Debug, Default)]
struct Making {
    turn: Mutex<()>,
    /// The moment at which the task that has the turn was last polled.
    polled: parking_lot::Mutex<Moment>,
}

/// The parts that every session of a client is made with.
#[derive(Debug)]
struct How {
    options: CassandraOptions,
    environment: Arc<dyn Environment>,
    nodes: Arc<Nodes>,
    hedges: Arc<Hedges>,
}

impl Connection {
    /// Connects for the first time, and sees to the schema.
    pub(super) async fn open(options: &CassandraOptions, environment: &Arc<dyn Environment>) -> Result<Self> {
        let mut how = How {
            options: options.clone(),
            environment: Arc::clone(environment),
            nodes: session::nodes(options, environment),
            hedges: Arc::default(),
        };
        let (present, expiry) = how.connect(true).await?;
        // From now on it is this client's, whatever becomes of the table; and what depends on it can be checked.
        how.options = how.options.with_expiry(expiry);
        how.options.check()?;
        Ok(Self {
            how,
            present: RwLock::new(Arc::new(present)),
            making: RwLock::default(),
            requests: AtomicU64::new(0),
        })
    }

    /// Returns the options of the client, with what the table has decided.
    pub(super) fn options(&self) -> &CassandraOptions {
        &self.how.options
    }

    /// Returns a session whose runtime runs, made anew if need be.
    pub(super) async fn get(&self) -> Result<Arc<Connected>> {
        let present = self.last();
        if present.is_alive() {
            return Ok(present);
        }
        // Behind a pointer: what is rare shall not make every request larger.
        let make: Pin<Box<dyn Future<Output = _> + Send + '_>> = Box::pin(self.make());
        make.await
    }

    /// Returns the statement that reads a page of locks, which is prepared when it is first needed.
    pub(super) async fn statement_of_keys<'a>(
        &self,
        connected: &'a Connected,
    ) -> Result<&'a PreparedStatement> {
        let How { options, environment, hedges, .. } = &self.how;
        let how = Preparing { session: &connected.session, profiles: &connected.profiles, hedges };
        // Preparing a statement waits for every node, without a limit of its own.
        let prepared = connected.statements.keys(options, &how);
        let prepared = session::within(&**environment, options.connect_timeout(), prepared).await;
        prepared
            .unwrap_or_else(|| Err(connect::too_slow("a statement could not be prepared in time", options)))
    }

    /// Returns the session that was made last, whether it is alive or not.
    pub(super) fn last(&self) -> Arc<Connected> {
        Arc::clone(&self.present.read())
    }

    /// Returns how many requests were sent, by the driver's own counters, copies of reads left out.
    pub(super) fn requests(&self) -> u64 {
        let all = self.requests.load(Ordering::Relaxed) + self.last().requests();
        all.saturating_sub(self.hedged())
    }

    /// Returns how many copies of reads were sent, by what the driver says.
    pub(super) fn hedged(&self) -> u64 {
        self.how.hedges.count()
    }

    /// Makes the next session in turn, but does not wait for its turn for ever: the task that has it may belong to a runtime that
    /// stands still.
    async fn make(&self) -> Result<Arc<Connected>> {
        let How { options, environment, .. } = &self.how;
        let patience = options.request_timeout();
        loop {
            let making = Arc::clone(&self.making.read());
            let turn = session::within(&**environment, patience, making.turn.lock()).await;
            if turn.is_some() {
                return making.watched(&**environment, self.make_in_turn()).await;
            }
            if environment.now().since(making.polled()) < patience {
                return Err(connect::too_slow("the connections are still being made anew", options));
            }
            let mut present = self.making.write();
            if Arc::ptr_eq(&present, &making) {
                *present = Arc::default();
            }
        }
    }

    async fn make_in_turn(&self) -> Result<Arc<Connected>> {
        let present = self.last();
        if present.is_alive() {
            return Ok(present);
        }
        tracing::debug!("the runtime of the connections has ended; connecting in this one");
        let made = Arc::new(self.how.connect(false).await?.0);
        self.requests.fetch_add(present.requests(), Ordering::Relaxed);
        *self.present.write() = Arc::clone(&made);
        Ok(made)
    }
}

impl Making {
    /// Returns the outcome of the work. Meanwhile it notes that the work is polled, at least as often as another task may look.
    async fn watched<T>(&self, environment: &dyn Environment, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            *self.polled.lock() = environment.now();
            if let Some(outcome) = session::within(environment, TICK, work.as_mut()).await {
                return outcome;
            }
        }
    }

    fn polled(&self) -> Moment {
        *self.polled.lock()
    }
}

impl How {
    /// Makes a session in this runtime; the first one sees to the schema, the others make sure that the rule is still the same by which the
    /// table's clients go.
    async fn connect(&self, first: bool) -> Result<(Connected, Expiry)> {
        let Self { options, environment, .. } = self;
        let runtime = watch_runtime(&**environment).await;
        let session = self.session(first).await?;
        let limit = match options.schema() {
            SchemaMode::Create if first => schema::CREATE_TIME,
            _ => options.connect_timeout(),
        };
        let profiles = session::profiles(options, &self.nodes);
        let profile = profiles.writes.clone();
        let asker = schema::Asker { session: &session, profile: &profile };
        let preparing = Preparing { session: &session, profiles: &profiles, hedges: &self.hedges };
        // Preparing a statement waits for every node, without a limit of its own.
        let setting_up = async {
            let expiry = match first {
                true => schema::ensure(asker, options, environment).await?,
                false => schema::look_again(asker, options, environment).await?.expiry,
            };
            Ok((Statements::prepare(options, &preparing).await?, expiry))
        };
        let (statements, expiry) = session::within(&**environment, limit, setting_up)
            .await
            .unwrap_or_else(|| Err(connect::too_slow("the schema could not be read in time", options)))?;
        if first {
            clocks::look(asker, &options.clone().with_expiry(expiry), &**environment).await;
        }
        Ok((Connected { session, statements, profiles, runtime }, expiry))
    }

    async fn session(&self, first: bool) -> Result<Arc<Session>> {
        match self.options.handed_over() {
            Some(session) if first => Ok(Arc::clone(session)),
            Some(_) => Err(connect::handed_over_session_ended()),
            None => session::open(&self.options, &self.nodes, &*self.environment).await.map(Arc::new),
        }
    }
}

/// Returns a sender that is closed when the runtime that runs this has ended.
async fn watch_runtime(environment: &dyn Environment) -> oneshot::Sender<Infallible> {
    let (runtime, gone) = oneshot::channel();
    let (started, has_started) = oneshot::channel();
    environment.spawn(Box::pin(async move {
        let _ = started.send(());
        let _ = gone.await;
    }));
    // A task that has begun stays where it is.
    let _ = has_started.await;
    runtime
}

impl fmt::Debug for Connected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connected").field("is_alive", &self.is_alive()).finish_non_exhaustive()
    }
}

impl Connected {
    fn is_alive(&self) -> bool {
        !self.runtime.is_closed()
    }

    fn requests(&self) -> u64 {
        let metrics = self.session.get_metrics();
        metrics.get_requests_unpaged_num()
            + metrics.get_requests_manually_paged_num()
            + metrics.get_requests_automatically_paged_num()
    }
}
