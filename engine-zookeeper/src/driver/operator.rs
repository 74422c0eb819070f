//! The task beside the driver of a session.

use std::sync::{Arc, Weak};

use tokio::sync::watch;
use ylock_core::environment::Moment;
use zookeeper_client::Client;

use super::connection::{Connection, State};
use super::dialer::{Dialer, Known, Refusal};
use super::ended::Ended;

/// The number of attempts to tell the servers that a session is over, from one runtime after the other.
pub(super) const FAREWELLS: u32 = 3;

/// Connects, and stays beside the driver until the session has ended. Dropped with its runtime, and the driver with it.
pub(super) struct Operator {
    dialer: Arc<Dialer>,
    connection: Weak<Connection>,
    /// `None` for an operator that only tells the servers that the session is over.
    seen: Option<watch::Receiver<State>>,
    known: Option<Known>,
    client: Option<Arc<Client>>,
    farewells: u32,
    done: bool,
}

impl Operator {
    pub(super) fn start(
        dialer: &Arc<Dialer>,
        connection: Weak<Connection>,
        seen: Option<watch::Receiver<State>>,
        known: Option<&Known>,
        farewells: u32,
    ) {
        let (dialer, known) = (Arc::clone(dialer), known.cloned());
        let operator = Self { dialer, connection, seen, known, client: None, farewells, done: false };
        // The driver starts its task where this task runs, so both end together. It serves all callers, whichever needs it first.
        let environment = Arc::clone(&operator.dialer.environment);
        environment.spawn_for_all(Box::pin(operator.run()));
    }

    async fn run(mut self) {
        match self.connect().await {
            Ok(client) => self.stay(client).await,
            Err(refusal) => self.fail(refusal),
        }
        self.done = true;
    }

    async fn connect(&mut self) -> Result<Arc<Client>, Refusal> {
        let dialer = Arc::clone(&self.dialer);
        let goes_on = self.known.is_some() && self.connection.strong_count() > 0;
        let client = match &mut self.known {
            Some(known) => {
                known.asked = dialer.environment.now();
                dialer.go_on(known).await?
            }
            None => {
                let (client, known) = tokio::select! {
                    biased;
                    _ = until_over(&mut self.seen) => return Err(Refusal::Ended),
                    answer = dialer.begin() => answer.map_err(Refusal::Failed)?,
                };
                self.known = Some(known);
                client
            }
        };
        let client = Arc::new(client);
        // From here on this operator decides when the driver is dropped.
        self.client = Some(Arc::clone(&client));
        if goes_on {
            dialer.catch_up(&client).await?;
        }
        Ok(client)
    }

    fn fail(&mut self, refusal: Refusal) {
        let Some(connection) = self.connection.upgrade() else { return };
        match refusal {
            Refusal::Ended => connection.end(Moment::ZERO),
            Refusal::Failed(error) => connection.change(|| State::Dead(Some(error))),
        }
    }

    async fn stay(&mut self, client: Arc<Client>) {
        let mut ended = Ended::of(client.state_watcher());
        if let (Some(connection), Some(known)) = (self.connection.upgrade(), &self.known) {
            connection.is_live(&client, known);
        }
        drop(client);
        let environment = Arc::clone(&self.dialer.environment);
        let over = async {
            let then = until_over(&mut self.seen).await;
            environment.sleep(then.since(environment.now())).await;
        };
        tokio::select! {
            biased;
            () = &mut ended => {}
            () = over => {}
        }
        if let Some(connection) = self.connection.upgrade() {
            connection.end(Moment::ZERO);
        }
        // The driver closes the session when it is dropped, which is when no task has it any more.
        // The state that was told last has the driver too, also when the connection is gone that told it.
        (self.client, self.seen) = (None, None);
        ended.await;
    }

    /// Returns whether the servers are to be told that the session is over.
    fn is_farewell(&self) -> bool {
        match self.seen.as_ref().map(|seen| seen.borrow().clone()) {
            Some(State::Over(then)) => then <= self.dialer.environment.now(),
            Some(_) => self.connection.strong_count() == 0,
            None => true,
        }
    }
}

async fn until_over(seen: &mut Option<watch::Receiver<State>>) -> Moment {
    let Some(seen) = seen else { return Moment::ZERO };
    match seen.wait_for(|state| matches!(state, State::Over(_))).await.as_deref() {
        Ok(State::Over(then)) => *then,
        // No task has the connection any more.
        _ => Moment::ZERO,
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        if let Some(connection) = self.connection.upgrade() {
            connection.died(self.client.take());
        }
        // The driver may not have told the servers that the session is over, and what the session has would stay until they end it.
        if let (true, Some(known), 1..) = (self.is_farewell(), &self.known, self.farewells) {
            Self::start(&self.dialer, Weak::new(), None, Some(known), self.farewells - 1);
        }
    }
}
