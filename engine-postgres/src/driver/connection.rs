//! The connection for requests: made again whenever it broke.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;

use futures_util::StreamExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_postgres::error::SqlState;
use tokio_postgres::{AsyncMessage, Error as DriverError, Row};
use ylock_core::connection::{Live, SharedConnection, Timeouts, driven};
use ylock_core::environment::Moment;
use ylock_core::{Error, Result};

use super::connector::{Connector, Messages, To};
use super::errors;
use super::server::When;
use super::session::{Argument, Session, Text};
use super::warmup;

/// The most connections for requests that a client has at a server. One is in use. The others were
/// given up, and the server has not finished them. While it waits for a standby it finishes none,
/// even if the client closes them: one more for each request that times out would use up the
/// connections of the primary.
const MOST: usize = 4;

/// The connection for requests; see the [module](self). Requests of all tasks are on their way at once; the server answers them in order.
pub(super) struct Connection {
    connector: Arc<Connector>,
    shared: SharedConnection<Arc<Session>>,
    /// A permit for each of the [`MOST`] connections. The task that drives one keeps it until the
    /// server has finished.
    finished: Arc<Semaphore>,
}

impl Connection {
    pub(super) fn new(connector: &Arc<Connector>) -> Arc<Self> {
        let timeouts = Timeouts { connect: connector.connect_timeout, request: connector.request_timeout };
        let shared = SharedConnection::new(connector.environment(), timeouts);
        Arc::new(Self { connector: Arc::clone(connector), shared, finished: Arc::new(Semaphore::new(MOST)) })
    }

    /// Sends a request. An error in the inner result is the server's, which has answered; one in the outer result means: *it may have
    /// happened, or still happen*, unless it says that [it did not](Error::had_no_effect).
    pub(super) async fn query(
        self: &Arc<Self>,
        text: Text<'_>,
        arguments: &[Argument<'_>],
        until: Moment,
    ) -> Result<std::result::Result<Vec<Row>, DriverError>> {
        let live = match self.shared.here() {
            Some(live) => live,
            // Nothing was sent yet, whatever goes wrong.
            None => {
                Box::pin(self.connector.until(until, self.live())).await.map_err(Error::without_effect)?
            }
        };
        let sent = self.connector.environment().now();
        let answer = {
            let answer = pin!(live.ask(text, arguments));
            self.connector.until(until, driven(self.shared.elsewhere(&live), answer)).await
        };
        let gave_time = until.since(sent) >= self.connector.request_timeout / 2;
        match &answer {
            Ok(Err(error)) if errors::knows_no_statement(error) => {
                self.connector.prepares_nothing();
                self.shared.forget(&live);
            }
            Ok(Err(error)) if errors::ends_connection(error) => drop(self.shared.forget(&live)),
            // Not if most of the time went by before the request was sent: then nothing is known of this connection.
            Err(_) if gave_time => drop(self.shared.forget(&live)),
            _ => {}
        }
        answer
    }

    /// Waits until there is a connection, for as long as connecting may take.
    pub(super) async fn connected(self: &Arc<Self>) -> Result<()> {
        let until = self.connector.environment().now().plus(self.connector.connect_timeout);
        self.connector.until(until, self.live()).await.map(drop)
    }

    async fn live(self: &Arc<Self>) -> Result<Live<Arc<Session>>> {
        self.shared
            .get(|| {
                let connection = Arc::clone(self);
                Box::pin(async move { connection.connect().await })
            })
            .await
    }

    async fn connect(&self) -> Result<()> {
        let until = self.connector.environment().now().plus(self.connector.connect_timeout);
        let permit = self.permit()?;
        let opened = self.connector.open(To::Server).await?;
        // In the runtime in which the connection was made: when that ends, the client is closed, and the next request connects in its own.
        self.connector.environment().spawn_beside(Box::pin(async move {
            drive(opened.messages).await;
            drop(permit);
        }));
        let is_own = self.connector.has_own_session(&opened.client, &opened.mark).await?;
        // It may be another server than before. What holders need of it they get, whatever it promises.
        let looked = self.connector.demands.look(&opened.client, When::Later);
        if let Err(error) = self.connector.until(until, looked).await {
            tracing::debug!(error = format!("{error:#}"), "what the server promises was not asked");
        }
        if is_own {
            warmup::run(&self.connector, &opened.client, until).await;
        }
        self.shared.put(Arc::new(Session::new(opened.client, is_own)));
        Ok(())
    }

    /// Returns the permit for one more connection, unless the server has still to finish too many that were given up.
    fn permit(&self) -> Result<OwnedSemaphorePermit> {
        Arc::clone(&self.finished).try_acquire_owned().map_err(|_| {
            let words =
                format!("the server has finished none of {MOST} connections: does it wait for a standby?");
            errors::unavailable(words).without_effect()
        })
    }
}

/// The routine of the server that warns when it gives up waiting: this name is the same in every language.
const WAITS_FOR_STANDBY: &str = "SyncRepWaitForLSN";

/// Brings answers, until the connection ends.
pub(super) async fn drive(mut messages: Messages) {
    while let Some(Ok(message)) = messages.next().await {
        if let AsyncMessage::Notice(notice) = message
            && (notice.routine() == Some(WAITS_FOR_STANDBY) || *notice.code() == SqlState::ADMIN_SHUTDOWN)
        {
            // The server has given up waiting for its standby, and will answer as if it had not: an answer that must not be heard. Other warnings with
            // the same code mean nothing for the answer.
            tracing::warn!(
                notice = notice.message(),
                "the server warns about a commit; its outcome counts as unknown"
            );
            return;
        }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}
