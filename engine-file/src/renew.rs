//! Renew: another lease, and what the holder wants to be shown.

use futures_util::future::join_all;
use ylock_core::engine::{Holding, Renewal};
use ylock_core::queue::Now;
use ylock_core::{LossReason, Result};

use crate::client::Client;
use crate::driver::IfMissing;
use crate::place::place;
use crate::state::State;

/// Renews grants. One whose file another process does not let go of delays no other.
pub(crate) async fn renew(client: &Client, holdings: &[Holding]) -> Vec<Result<Renewal>> {
    if !client.folder.is_there() {
        // Clients that come later take the same locks in another folder.
        tracing::error!(error = %client.folder.is_gone(), "all locks of this client are lost");
        return holdings.iter().map(|_| Ok(Renewal::Lost(LossReason::Gone))).collect();
    }
    join_all(holdings.iter().map(|holding| renew_one(client, holding))).await
}

async fn renew_one(client: &Client, holding: &Holding) -> Result<Renewal> {
    let announcement = holding.next.as_ref().map(|next| client.announcing.begin(next.id));
    let change = |state: &mut State, now| match &announcement {
        Some(announcement) if announcement.is_void() => {
            Ok(show(client, &Holding::new(holding.grant.clone(), None), state, now))
        }
        _ => Ok(show(client, holding, state, now)),
    };
    // A grant whose file is gone is lost.
    let renewed = client.change_soon(&holding.grant.key, IfMissing::Leave, change);
    client.meter.measure(&*client.environment, "renew", renewed).await
}

fn show(client: &Client, holding: &Holding, state: &mut State, now: Now) -> Renewal {
    let renewal = state.queue.renew(holding, || place(now), now);
    if let Some(kept) = holding.next.as_ref().and_then(|next| state.queue.kept(next.id)) {
        *kept = client.id;
    }
    renewal
}
