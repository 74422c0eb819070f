//! What keeps a session: a heartbeat for as long as this client has something there, and an end for what nobody wants any more.

use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::driver::Session;
use crate::leaving::leave;

/// Heartbeats per session.
const BEATS: u32 = 6;
/// The longest sleep while there is something to look after: timers may stand still while the machine is suspended.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// Beats for a session as long as it has claims, and gives up those that nobody wants any more.
pub(crate) fn look_after(session: &Arc<Session>) {
    let environment = Arc::clone(&session.environment);
    environment.spawn(Box::pin(pulse(Arc::downgrade(session))));
}

async fn pulse(weak: Weak<Session>) {
    while let Some(session) = weak.upgrade().filter(|session| !session.is_over()) {
        if session.claims.is_empty() {
            session.claims.wake.notified().await;
            continue;
        }
        let pause = next_look(&session);
        let environment = Arc::clone(&session.environment);
        drop(session);
        environment.sleep(pause).await;
        let Some(session) = weak.upgrade() else { return };
        give_up_lapsed(&session);
        if session.now().since(session.confirmed()) >= session.timeout() / BEATS
            && session.beat().await.is_err()
            && session.now().since(session.confirmed()) >= session.timeout() * 3 / 2
        {
            // The servers have ended it if they were there, and the driver has not noticed.
            session.end();
        }
    }
}

fn next_look(session: &Session) -> Duration {
    let now = session.now();
    let beat = session.confirmed().plus(session.timeout() / BEATS).since(now);
    let end = session.claims.next_end().map_or(beat, |end| end.since(now));
    beat.min(end).clamp(Duration::from_millis(5), LONGEST_SLEEP)
}

/// Its caller does not run any more, or not enough: its lease is over. While this process lives its session would keep the place.
fn give_up_lapsed(session: &Arc<Session>) {
    for (key, id) in session.claims.lapsed(session.now()) {
        let session = Arc::clone(session);
        let environment = Arc::clone(&session.environment);
        environment.spawn(Box::pin(async move { drop(leave(&session, &key, id).await) }));
    }
}
