//! The upkeep of a session: keep-alives, for as long as this client has claims in it, and for a while after.

use std::sync::{Arc, Weak};
use std::time::Duration;

use ylock_core::environment::Environment;

use super::client::Client;
use super::session::Session;
use super::store::to_error;

/// The number of keep-alives per time to live of the lease.
const BEATS: u32 = 6;
/// For how many times its time to live a lease is kept that is not used.
const IDLE: u32 = 2;
/// The longest sleep: timers may stand still while the machine is suspended.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);
const SHORTEST_SLEEP: Duration = Duration::from_millis(5);

/// Starts to look after a session, in whatever runtime there is.
pub(super) fn start(client: &Arc<Client>, session: &Arc<Session>) {
    let (client_of_task, session_of_task) = (Arc::downgrade(client), Arc::downgrade(session));
    let environment = Arc::downgrade(&client.environment);
    session.keepalive.start(&client.environment, move || {
        Box::pin(run(Weak::clone(&environment), Weak::clone(&client_of_task), Weak::clone(&session_of_task)))
    });
}

async fn run(environment: Weak<dyn Environment>, client: Weak<Client>, session: Weak<Session>) {
    while let (Some(client), Some(session)) = (client.upgrade(), session.upgrade()) {
        if session.is_over() {
            client.forget(&session);
            return;
        }
        if client.give_up_idle(&session, session.ttl * IDLE) {
            drop(client.revoke(session.lease).await);
            return;
        }
        let pause = beat(&client, &session).await.clamp(SHORTEST_SLEEP, LONGEST_SLEEP);
        drop((client, session));
        let Some(environment) = environment.upgrade() else { return };
        let sleep = environment.sleep(pause);
        drop(environment);
        sleep.await;
    }
}

/// Sends a keep-alive if it is due. Returns the time until the next one.
async fn beat(client: &Arc<Client>, session: &Arc<Session>) -> Duration {
    let every = session.ttl / BEATS;
    let due = session.confirmed().plus(every);
    let now = client.environment.now();
    if due > now {
        return due.since(now);
    }
    match session.beat(client).await {
        Ok(_) => Duration::ZERO,
        Err(fault) => {
            let error = format!("{:#}", to_error(fault));
            tracing::debug!(error, "an etcd lease could not be prolonged; it is tried again");
            client.environment.jitter(every / 4)
        }
    }
}
