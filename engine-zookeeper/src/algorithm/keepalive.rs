//! The upkeep of a session: signs of life, which are heartbeats for as long as this client has claims in it, and an end for claims that no
//! caller wants any more.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::Notify;

use super::cleanup;
use super::session::Session;

/// The number of signs of life per timeout of the session: what the leader has heard is then no older than T/6 and T/10 and the time of an
/// answer, see [`heartbeat`](super::heartbeat).
const SIGNS: u32 = 10;
/// The longest sleep while there is something to look after: timers may stand still while the machine is suspended.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// Starts to beat for a session as long as it has claims, and to give up those that no caller wants any more.
pub(crate) fn start(session: &Arc<Session>) {
    let (weak, wake) = (Arc::downgrade(session), Arc::clone(&session.claims.wake));
    session
        .keepalive
        .start(&session.environment, move || Box::pin(keepalive(Weak::clone(&weak), Arc::clone(&wake))));
    let (weak, work) = (Arc::downgrade(session), Arc::clone(&session.claims.work));
    session
        .cleaner
        .start(&session.environment, move || Box::pin(cleanup::run(Weak::clone(&weak), Arc::clone(&work))));
}

async fn keepalive(weak: Weak<Session>, wake: Arc<Notify>) {
    while let Some(session) = weak.upgrade().filter(|session| !session.is_over()) {
        if session.claims.is_empty() {
            let over = session.until_over();
            tokio::select! {
                biased;
                () = wake.notified() => {}
                () = over => {}
                () = idle(session) => {}
            }
            continue;
        }
        session.claims.give_up_lapsed(session.now());
        beat(&session).await;
        let (pause, over) = (next_look(&session), session.until_over());
        let environment = Arc::clone(&session.environment);
        drop(session);
        tokio::select! {
            biased;
            () = over => {}
            () = environment.sleep(pause) => {}
        }
    }
}

/// Shows that a client is alive that has no claims, and waits for as long as it need not do so again. It could not rely on the first lock that
/// it takes after a silence, see [`heartbeat`](super::heartbeat). It need not be a write, because nothing counts from it.
async fn idle(session: Arc<Session>) {
    let (environment, pause) = (Arc::clone(&session.environment), session.timeout() / SIGNS);
    drop(session.show().await);
    drop(session);
    environment.sleep(pause).await;
}

async fn beat(session: &Session) {
    if session.now().since(session.confirmed()) >= session.timeout() / SIGNS
        && session.beat().await.is_err()
        && session.silence() >= session.timeout() * 3 / 2
    {
        // The servers have ended the session if they were there, and the driver has not noticed.
        session.end();
    }
}

fn next_look(session: &Session) -> Duration {
    let now = session.now();
    let beat = session.confirmed().plus(session.timeout() / SIGNS).since(now);
    let end = session.claims.next_end().map_or(beat, |end| end.since(now));
    beat.min(end).clamp(Duration::from_millis(5), LONGEST_SLEEP)
}
