//! The janitor: nodes of locks that nobody is in any more.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;

use crate::driver::Session;
use crate::place::Place;

/// How long a lock's node may stay when nobody is in it.
const SWEEP_PAUSE: Duration = Duration::from_millis(300);
/// How many are looked at together.
const SWEEP_BATCH: usize = 64;

/// Sees to it that a lock's node does not stay when nobody is in it. Should this process die first, the server removes it: it is a
/// container.
pub(crate) fn sweep_later(session: &Arc<Session>, place: &Place) {
    if session.claims.litter(place) {
        let environment = Arc::clone(&session.environment);
        environment.spawn(Box::pin(sweep(Arc::clone(session))));
    }
}

async fn sweep(session: Arc<Session>) {
    loop {
        session.environment.sleep(SWEEP_PAUSE).await;
        let litter = session.claims.sweep();
        if litter.is_empty() {
            return;
        }
        for batch in litter.chunks(SWEEP_BATCH) {
            join_all(batch.iter().map(|place| remove_if_empty(&session, place))).await;
        }
    }
}

/// Who comes in between keeps it: a node with children is not removed. What fails is left to the server.
async fn remove_if_empty(session: &Session, place: &Place) {
    if matches!(session.count(&place.lock).await, Ok(Some(0))) {
        session.claims.note_busy(place, false);
        drop(session.remove(&place.lock).await);
    }
}
