//! The connection for requests: made again whenever it broke.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;

use futures_util::{FutureExt, StreamExt};
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::task::unconstrained;
use tokio_postgres::error::SqlState;
use tokio_postgres::{AsyncMessage, Error as DriverError, Row};
use ylock_core::Result;
use ylock_core::environment::Moment;

use super::attempt::{Attempt, Connected};
use super::connector::{Connector, Messages, To};
use super::errors::{self, unavailable};
use super::server::When;
use super::session::{Argument, Session, Text};
use super::warmup;

/// The number of times that a request looks for a connection, because the runtime of one may have ended and taken it along.
const ATTEMPTS: usize = 4;

/// The connection for requests; see the [module](self). Requests of all tasks are on their way at once; the server answers them in order.
pub(super) struct Connection {
    connector: Arc<Connector>,
    live: Mutex<Option<Arc<Session>>>,
    /// The last attempt to connect, under way or failed.
    attempt: Mutex<Option<Attempt>>,
}

impl Connection {
    pub(super) fn new(connector: &Arc<Connector>) -> Arc<Self> {
        let connector = Arc::clone(connector);
        Arc::new(Self { connector, live: Mutex::default(), attempt: Mutex::default() })
    }

    /// Sends a request. An error in the inner result is the server's, which has answered; one in the outer result means: *it may have
    /// happened, or still happen*.
    pub(super) async fn query(
        self: &Arc<Self>,
        text: Text<'_>,
        arguments: &[Argument<'_>],
        until: Moment,
    ) -> Result<std::result::Result<Vec<Row>, DriverError>> {
        let known = self.live.lock().clone().filter(|live| !live.is_closed());
        let live = match known {
            Some(live) => live,
            None => Box::pin(self.connector.until(until, self.live())).await?,
        };
        let sent = self.connector.environment().now();
        let answer = {
            let answer = pin!(async { Ok(live.ask(text, arguments).await) });
            self.connector.until(until, answer).await
        };
        let gave_time = until.since(sent) >= self.connector.request_timeout / 2;
        match &answer {
            Ok(Err(error)) if errors::knows_no_statement(error) => {
                self.connector.prepares_nothing();
                self.forget(&live);
            }
            Ok(Err(error)) if errors::ends_connection(error) => self.forget(&live),
            // Not if most of the time went by before the request was sent: then nothing is known of this connection.
            Err(_) if gave_time => self.forget(&live),
            _ => {}
        }
        answer
    }

    /// Waits until there is a connection, for as long as connecting may take.
    pub(super) async fn connected(self: &Arc<Self>) -> Result<()> {
        let until = self.connector.environment().now().plus(self.connector.connect_timeout);
        self.connector.until(until, self.live()).await.map(drop)
    }

    async fn live(self: &Arc<Self>) -> Result<Arc<Session>> {
        for _ in 0..ATTEMPTS {
            if let Some(live) = self.live.lock().clone().filter(|live| !live.is_closed()) {
                return Ok(live);
            }
            if let Ok(Err(error)) = self.attempt().await {
                return Err(error);
            }
            // The connection is there, or the runtime in which it was made has ended.
        }
        Err(unavailable("no runtime is left to connect in"))
    }

    /// Returns the attempt that is under way, or has just failed, or a new one.
    fn attempt(self: &Arc<Self>) -> Connected {
        let now = self.connector.environment().now();
        let mut attempt = self.attempt.lock();
        let is_of_use = |known: &&Attempt| known.is_of_use(now, self.connector.connect_timeout);
        if let Some(known) = attempt.as_ref().filter(is_of_use) {
            return known.result.clone();
        }
        let (publish, result) = oneshot::channel();
        let result = unconstrained(result).shared();
        *attempt = Some(Attempt { began: now, result: result.clone() });
        let connection = Arc::clone(self);
        self.connector.environment().spawn(Box::pin(async move {
            // The requests that waited may have ended.
            let _ = publish.send(connection.connect().await);
        }));
        result
    }

    async fn connect(&self) -> Result<()> {
        let until = self.connector.environment().now().plus(self.connector.connect_timeout);
        let opened = self.connector.open(To::Server).await?;
        // In the runtime in which the connection was made: when that ends, the client is closed, and the next request connects in its own.
        self.connector.environment().spawn(Box::pin(drive(opened.messages)));
        let is_own = self.connector.has_own_session(&opened.client, &opened.mark).await?;
        // It may be another server than before. What holders need of it they get, whatever it promises.
        let looked = self.connector.demands.look(&opened.client, When::Later);
        if let Err(error) = self.connector.until(until, looked).await {
            tracing::debug!(error = format!("{error:#}"), "what the server promises was not asked");
        }
        if is_own {
            warmup::run(&self.connector, &opened.client, until).await;
        }
        *self.live.lock() = Some(Arc::new(Session::new(opened.client, is_own)));
        Ok(())
    }

    /// Forgets a connection, unless there is a newer one.
    fn forget(&self, live: &Arc<Session>) {
        self.live.lock().take_if(|now| Arc::ptr_eq(now, live));
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
