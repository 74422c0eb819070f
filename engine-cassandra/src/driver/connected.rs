//! The session of a client.

use std::fmt;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::Shared;
use scylla::client::session::Session;
use scylla::statement::prepared::PreparedStatement;
use tokio::sync::oneshot;
use tracing::instrument::WithSubscriber;
use ylock_core::Result;
use ylock_core::environment::{Answer, Environment};

use super::clocks;
use super::errors::connect;
use super::hedges::Hedges;
use super::schema;
use super::session::{self, Profiles};
use super::statements::{Preparing, Statements};
use crate::options::{CassandraOptions, Rules, SchemaMode};

/// A session, and what was prepared with it.
pub(super) struct Connected {
    pub(super) session: Arc<Session>,
    pub(super) statements: Statements,
    pub(super) profiles: Profiles,
}

/// The session of a client. The driver's tasks for it are where no work of the program can block
/// them, and no runtime of the program takes them along when it ends; but for a session that the
/// program has handed over, which is where the program has built it.
pub(super) struct Connection {
    options: CassandraOptions,
    environment: Arc<dyn Environment>,
    hedges: Arc<Hedges>,
    connected: Connected,
    /// The end of the runtime of a session that was handed over.
    end: Option<Shared<Answer<()>>>,
}

impl Connection {
    /// Connects, and sees to the schema.
    pub(super) async fn open(options: &CassandraOptions, environment: &Arc<dyn Environment>) -> Result<Self> {
        let hedges = Arc::<Hedges>::default();
        let (options, environment) = (options.clone(), Arc::clone(environment));
        let end = options.handed_over().is_some().then(|| environment.end_of_runtime().shared());
        let work = connect(options.clone(), Arc::clone(&environment), Arc::clone(&hedges));
        let (connected, rules) = match &end {
            Some(_) => work.await?,
            None => for_all(&environment, work, &options).await?,
        };
        // From now on it is this client's, whatever becomes of the table; and what depends on it can be checked.
        let options = options.with_rules(rules);
        options.check()?;
        Ok(Self { options, environment, hedges, connected, end })
    }

    /// Returns the options of the client, with what the table has decided.
    pub(super) fn options(&self) -> &CassandraOptions {
        &self.options
    }

    /// Returns the session.
    pub(super) fn get(&self) -> Result<&Connected> {
        let has_ended = self.end.as_ref().is_some_and(|end| end.clone().now_or_never().is_some());
        if has_ended { Err(connect::handed_over_session_ended()) } else { Ok(&self.connected) }
    }

    /// Returns the statement that reads a page of locks, which is prepared when it is first needed.
    pub(super) async fn statement_of_keys(&self) -> Result<&PreparedStatement> {
        let Self { options, environment, hedges, connected, .. } = self;
        let how = Preparing { session: &connected.session, profiles: &connected.profiles, hedges };
        // Preparing a statement waits for every node, without a limit of its own.
        let prepared = connected.statements.keys(options, &how);
        let prepared = session::within(&**environment, options.connect_timeout(), prepared).await;
        prepared
            .unwrap_or_else(|| Err(connect::too_slow("a statement could not be prepared in time", options)))
    }

    /// Returns how many requests were sent, by the driver's own counters, copies of reads left out.
    pub(super) fn requests(&self) -> u64 {
        let metrics = self.connected.session.get_metrics();
        let all = metrics.get_requests_unpaged_num()
            + metrics.get_requests_manually_paged_num()
            + metrics.get_requests_automatically_paged_num();
        all.saturating_sub(self.hedged())
    }

    /// Returns how many copies of reads were sent, by what the driver says.
    pub(super) fn hedged(&self) -> u64 {
        self.hedges.count()
    }
}

/// Returns the outcome of work that is done where no runtime of the program is needed.
async fn for_all<T: Send + 'static>(
    environment: &Arc<dyn Environment>,
    work: impl Future<Output = Result<T>> + Send + 'static,
    options: &CassandraOptions,
) -> Result<T> {
    let (publish, outcome) = oneshot::channel();
    // What connecting tells the log is for the caller.
    let work = work.with_current_subscriber();
    environment.spawn_for_all(Box::pin(async move {
        // The caller may have ended.
        let _ = publish.send(work.await);
    }));
    outcome.await.unwrap_or_else(|_| Err(connect::too_slow("connecting was broken off", options)))
}

/// Makes a session in this runtime, and sees to the schema.
async fn connect(
    options: CassandraOptions,
    environment: Arc<dyn Environment>,
    hedges: Arc<Hedges>,
) -> Result<(Connected, Rules)> {
    let nodes = session::nodes(&options, &environment);
    let session = match options.handed_over() {
        Some(session) => Arc::clone(session),
        None => Arc::new(session::open(&options, &nodes, &*environment).await?),
    };
    let limit = match options.schema() {
        SchemaMode::Create => schema::CREATE_TIME,
        SchemaMode::Check => options.connect_timeout(),
    };
    let profiles = session::profiles(&options, &nodes);
    let profile = profiles.writes.clone();
    let asker = schema::Asker { session: &session, profile: &profile };
    let preparing = Preparing { session: &session, profiles: &profiles, hedges: &hedges };
    // Preparing a statement waits for every node, without a limit of its own.
    let setting_up = async {
        let rules = schema::ensure(asker, &options, &environment).await?;
        Ok((Statements::prepare(&options, &preparing).await?, rules))
    };
    let (statements, rules) = session::within(&*environment, limit, setting_up)
        .await
        .unwrap_or_else(|| Err(connect::too_slow("the schema could not be read in time", &options)))?;
    clocks::look(asker, &options.clone().with_rules(rules), &*environment).await;
    Ok((Connected { session, statements, profiles }, rules))
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("options", &self.options).finish_non_exhaustive()
    }
}
