//! Release: leave, and let the next one know.

use ylock_core::engine::{AcquisitionId, Release, Request};
use ylock_core::queue::Now;
use ylock_core::{Key, Result};

use crate::client::Client;
use crate::driver::IfMissing;
use crate::place::place;
use crate::state::State;

/// Gives back, leaves the queue, or undoes, and joins the queue as `next`. Nothing of an acquisition is ever on its way when its call has
/// ended: what it does to the file it does within one poll. So a release need not be remembered.
pub(crate) async fn release(
    client: &Client,
    key: &Key,
    id: AcquisitionId,
    next: Option<&Request>,
) -> Result<Release> {
    let change = |state: &mut State, now| Ok(leave(client, id, next, state, now));
    let released = client.change_soon(key, if_missing(next), change);
    client.meter.measure(&*client.environment, "release", released).await
}

/// Does so at once. Returns nothing if another process is changing the lock.
pub(crate) fn release_at_once(
    client: &Client,
    key: &Key,
    id: AcquisitionId,
    next: Option<&Request>,
) -> Result<Option<Release>> {
    client.change(key, if_missing(next), |state, now| Ok(leave(client, id, next, state, now)))
}

fn leave(client: &Client, id: AcquisitionId, next: Option<&Request>, state: &mut State, now: Now) -> Release {
    client.announcing.released(id);
    let released = state.queue.release(id, next, || place(now), now);
    if let Some(kept) = next.and_then(|next| state.queue.kept(next.id)) {
        *kept = client.id;
    }
    released
}

fn if_missing(next: Option<&Request>) -> IfMissing {
    if next.is_some() { IfMissing::Create } else { IfMissing::Leave }
}
