//! The cleaner of a client: removes claims that are not wanted any more and that no other task removes.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::Notify;
use ylock_core::environment::Moment;

use super::client::Client;
use super::release;

/// The number of claims that are removed together.
const BATCH: usize = 64;
/// The longest sleep while the client is in use. No acquisition wakes the cleaner, which would cost each of them more than all else that this client
/// does for it: what begins is looked at after that time.
const LONGEST_SLEEP: Duration = Duration::from_millis(250);
/// The shortest sleep between two looks at what is due.
const SHORTEST_SLEEP: Duration = Duration::from_millis(5);
/// The shortest time between two looks at the leases, in times that a look took.
const SLEEP_PER_LOOK: u32 = 20;

/// Starts to look after the claims of a client, in whatever runtime there is.
pub(super) fn start(client: &Arc<Client>) {
    let (weak, work) = (Arc::downgrade(client), Arc::clone(&client.claims.work));
    client.cleaner.start(&client.environment, move || Box::pin(run(Weak::clone(&weak), Arc::clone(&work))));
}

async fn run(weak: Weak<Client>, work: Arc<Notify>) {
    // When leases are to be looked at. A look goes through all claims, so it has its own pace.
    let mut lapse = Moment::ZERO;
    while let Some(client) = weak.upgrade().filter(|client| !client.is_closed()) {
        let began = client.environment.now();
        if began >= lapse {
            let next = client.claims.give_up_lapsed(began);
            let now = client.environment.now();
            // The clock may have gone on while the machine stood still.
            let shortest = (now.since(began) * SLEEP_PER_LOOK).clamp(SHORTEST_SLEEP, LONGEST_SLEEP * 4);
            let pause = next.map_or(LONGEST_SLEEP, |next| next.since(now)).min(LONGEST_SLEEP);
            lapse = now.plus(pause.max(shortest));
        }
        remove_due(&client).await;
        let next = client.claims.next_due().map_or(lapse, |due| due.min(lapse));
        let pause = next.since(client.environment.now()).max(SHORTEST_SLEEP);
        let sleep = client.is_in_use().then(|| client.environment.sleep(pause));
        drop(client);
        let sleep = async {
            match sleep {
                Some(sleep) => sleep.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = work.notified() => {}
            () = sleep => {}
        }
    }
}

async fn remove_due(client: &Arc<Client>) {
    loop {
        let due = client.claims.due(client.environment.now(), BATCH, client.due());
        if due.is_empty() || client.is_closed() {
            return;
        }
        join_all(due.into_iter().map(|found| release::remove(client, found))).await;
    }
}
