//! The upkeep of a session: the next one is made in time, for as long as this client has claims, and for a while after.

use std::sync::{Arc, Weak};
use std::time::Duration;

use ylock_core::environment::Environment;

use super::client::Client;
use super::session::Session;

/// The number of sessions that follow each other within the time to live of a lease.
const SESSIONS: u32 = 6;
/// For how many times its time to live a client goes on like that without a claim.
const IDLE: u32 = 2;
/// The longest sleep: timers may stand still while the machine is suspended.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);
const SHORTEST_SLEEP: Duration = Duration::from_millis(5);

/// Starts to look after a session, in whatever runtime there is.
pub(super) fn start(client: &Arc<Client>, session: &Arc<Session>) {
    let (client_of_task, session_of_task) = (Arc::downgrade(client), Arc::downgrade(session));
    let environment = Arc::downgrade(&client.environment);
    session.upkeep.start(&client.environment, move || {
        Box::pin(run(Weak::clone(&environment), Weak::clone(&client_of_task), Weak::clone(&session_of_task)))
    });
}

async fn run(environment: Weak<dyn Environment>, client: Weak<Client>, session: Weak<Session>) {
    while let (Some(client), Some(session)) = (client.upgrade(), session.upgrade()) {
        let Some(pause) = look_after(&client, &session).await else { return };
        drop((client, session));
        let Some(environment) = environment.upgrade() else { return };
        let sleep = environment.sleep(pause.clamp(SHORTEST_SLEEP, LONGEST_SLEEP));
        drop(environment);
        sleep.await;
    }
}

/// Returns the time until the session is to be looked after again; `None` if it is not in use any more.
async fn look_after(client: &Arc<Client>, session: &Arc<Session>) -> Option<Duration> {
    if session.is_over() {
        client.forget(session);
        return None;
    }
    if !client.is_newest(session) {
        // Those that have claims in it take them along. Its lease ends by itself, and with it its marks: not before, for these.
        if session.has_claims() {
            return Some(LONGEST_SLEEP);
        }
        client.forget(session);
        return None;
    }
    if client.give_up_idle(session, session.ttl * IDLE) {
        drop(client.revoke(session.lease).await);
        return None;
    }
    let (every, now) = (session.ttl / SESSIONS, client.environment.now());
    let due = session.made().plus(every);
    if due > now {
        return Some(due.since(now));
    }
    match client.make_next(session).await {
        Ok(()) => Some(Duration::ZERO),
        Err(error) => {
            let error = format!("{error:#}");
            tracing::debug!(error, "an etcd lease could not be made; it is tried again");
            Some(client.environment.jitter(every / 4))
        }
    }
}
