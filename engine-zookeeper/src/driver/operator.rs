//! The task beside the driver of a session.

use std::sync::{Arc, Weak};

use tokio::sync::watch;
use ylock_core::environment::Moment;
use zookeeper_client::Client;

use super::connection::{Connection, State};
use super::dialer::{Dialer, Known};
use super::ended::Ended;

type Seen = watch::Receiver<State>;

/// Connects, and stays beside the driver until the session has ended. On the client's own thread, and so is the driver, which starts its task
/// where this one runs: both serve all callers, whichever needs them first.
pub(super) fn start(dialer: &Arc<Dialer>, connection: Weak<Connection>, seen: Seen) {
    let work = run(Arc::clone(dialer), connection, seen);
    dialer.environment.spawn_for_all(Box::pin(work));
}

async fn run(dialer: Arc<Dialer>, connection: Weak<Connection>, mut seen: Seen) {
    let begun = tokio::select! {
        biased;
        _ = until_over(&mut seen) => return,
        begun = dialer.begin() => begun,
    };
    match begun {
        Ok((client, known)) => stay(&dialer, &connection, seen, Arc::new(client), known).await,
        Err(error) => {
            if let Some(connection) = connection.upgrade() {
                connection.change(|| State::NotBegun(Some(error)));
            }
        }
    }
}

async fn stay(
    dialer: &Dialer,
    connection: &Weak<Connection>,
    mut seen: Seen,
    client: Arc<Client>,
    known: Known,
) {
    let mut ended = Ended::of(client.state_watcher());
    if let Some(connection) = connection.upgrade() {
        connection.is_live(&client, known);
    }
    let over = async {
        let then = until_over(&mut seen).await;
        dialer.environment.sleep(then.since(dialer.environment.now())).await;
    };
    tokio::select! {
        biased;
        () = &mut ended => {}
        () = over => {}
    }
    if let Some(connection) = connection.upgrade() {
        connection.end(Moment::ZERO);
    }
    // The driver closes the session when it is dropped, which is when no task has it any more.
    // The state that was told last has the driver too, also when the connection is gone that told it.
    drop((client, seen));
    ended.await;
}

/// Waits until the session is over, or no task has the connection any more. Returns when the servers may hear of it.
async fn until_over(seen: &mut Seen) -> Moment {
    match seen.wait_for(|state| matches!(state, State::Over(_))).await.as_deref() {
        Ok(State::Over(then)) => *then,
        _ => Moment::ZERO,
    }
}
