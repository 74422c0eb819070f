//! The cleaner of a session: removes claims that are not wanted any more and that no other task removes, and the nodes of empty locks.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::Notify;

use super::place::Place;
use super::release;
use super::session::Session;

/// The number of claims that are looked at together.
const BATCH: usize = 64;
/// The longest sleep while there is something to do: timers may stand still while the machine is suspended.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);
/// The shortest sleep between two looks at what is due.
const SHORTEST_SLEEP: Duration = Duration::from_millis(5);

/// Looks after a session until it has ended.
pub(crate) async fn run(weak: Weak<Session>, work: Arc<Notify>) {
    while let Some(session) = weak.upgrade().filter(|session| !session.is_over()) {
        let began = session.now();
        remove_due(&session).await;
        sweep(&session).await;
        let next = [session.claims.next_due(), session.lock_nodes.next_sweep()].into_iter().flatten().min();
        let pause = next.map(|next| next.since(began).clamp(SHORTEST_SLEEP, LONGEST_SLEEP));
        let (environment, over) = (Arc::clone(&session.environment), session.until_over());
        drop(session);
        let sleep = async {
            match pause {
                Some(pause) => environment.sleep(pause).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = work.notified() => {}
            () = sleep => {}
            () = over => {}
        }
    }
}

async fn remove_due(session: &Arc<Session>) {
    loop {
        let due = session.claims.due(session.now(), BATCH, session.due());
        if due.is_empty() || session.is_over() {
            return;
        }
        join_all(due.into_iter().map(|found| release::remove(session, found))).await;
    }
}

async fn sweep(session: &Session) {
    loop {
        let some = session.lock_nodes.sweep(session.now());
        if some.is_empty() || session.is_over() {
            return;
        }
        join_all(some.iter().map(|place| remove_if_empty(session, place))).await;
    }
}

/// Removes a lock's node if it is empty. A contender that comes in between keeps it: a node with children is not removed. A node whose
/// removal fails is left to the server.
async fn remove_if_empty(session: &Session, place: &Place) {
    if matches!(session.count(&place.lock).await, Ok(Some(0))) {
        session.lock_nodes.note_busy(place, false);
        drop(session.remove(&place.lock).await);
    }
}
