//! The view of a semaphore from outside, and what an operator takes away from it.

use futures_util::stream::{self, StreamExt, TryStreamExt};

use super::keys::{self, Keys, permits_of};
use crate::engine::{AcquisitionId, Holder, Inspection, Waiter};
use crate::error::{ErrorKind, Result};
use crate::handle::Handle;
use crate::key::Key;

/// So many permits are looked at at once.
const LOOKS: usize = 16;

/// The permits of a semaphore, as the store shows them.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct SemaphoreInspection {
    /// How many permits there are, as its clients say; `None` while no client has a permit or waits for one.
    pub permits: Option<u32>,
    /// The holders of permits, in the order of the permits' numbers.
    pub holders: Vec<Holder>,
    /// The waiters, in the order of their turns: of this client all, of each other client only its first.
    pub queue: Vec<Waiter>,
}

/// Returns what the store shows of a semaphore: of each of its permits, and of its turnstile.
pub(crate) async fn inspect(handle: &Handle, name: &Key) -> Result<SemaphoreInspection> {
    let Some(keys) = keys_in_use(handle, name).await? else { return Ok(SemaphoreInspection::default()) };
    let turnstile = handle.keeper.inspect(&keys.turnstile).await?;
    let holders = looks(handle, &keys).await?.into_iter().flat_map(|seen| seen.holders).collect();
    Ok(SemaphoreInspection { permits: Some(keys.count()), holders, queue: waiters(turnstile) })
}

/// Takes all permits away, and returns how many were held. The clients' reads go last: the permits are found by them, so a call that has broken off can be
/// made again. They go as well, so that a holder of which the store shows no permit yet is told, too.
pub(crate) async fn revoke(handle: &Handle, name: &Key) -> Result<usize> {
    let Some(keys) = keys_in_use(handle, name).await? else { return Ok(0) };
    let mut count = 0;
    for place in 0..keys.permits() {
        count += handle.keeper.revoke(&keys.permit(place)?).await?;
    }
    handle.keeper.revoke(&keys.clients).await?;
    Ok(count)
}

/// Takes permits away from these acquisitions. Returns how many of them held one.
pub(crate) async fn revoke_some(handle: &Handle, name: &Key, ids: &[AcquisitionId]) -> Result<usize> {
    let Some(keys) = keys_in_use(handle, name).await? else { return Ok(0) };
    let mut count = 0;
    for place in 0..keys.permits() {
        let permit = keys.permit(place)?;
        let holders = handle.keeper.exact_holders(&permit).await?;
        for holder in holders.iter().filter(|holder| ids.contains(&holder.id)) {
            count += usize::from(handle.keeper.revoke_one(&permit, holder.id).await?);
        }
    }
    Ok(count)
}

/// Returns whether the store shows clients of a semaphore, or what cannot be read in the place of them: then a listing shows the damage.
pub(crate) async fn is_in_use(handle: &Handle, name: &Key) -> Result<bool> {
    match keys_in_use(handle, name).await {
        Err(error) if error.kind() == ErrorKind::Unexpected => Ok(true),
        keys => keys.map(|keys| keys.is_some()),
    }
}

/// Returns the keys of a semaphore that has clients.
async fn keys_in_use(handle: &Handle, name: &Key) -> Result<Option<Keys>> {
    let clients = handle.keeper.exact_holders(&keys::clients(name)?).await?;
    // Of clients that name different numbers at least one is about to fail.
    let count = clients.iter().filter_map(|client| permits_of(client.owner)).max();
    count.map(|count| Keys::of(name.clone(), count)).transpose()
}

/// Returns what the store shows of each permit, in the order of their numbers.
async fn looks(handle: &Handle, keys: &Keys) -> Result<Vec<Inspection>> {
    let looks =
        (0..keys.permits()).map(|place| async move { handle.keeper.inspect(&keys.permit(place)?).await });
    stream::iter(looks).buffered(LOOKS).try_collect().await
}

/// Returns the waiters for a permit: the first one has the turnstile, until a permit is free.
fn waiters(turnstile: Inspection) -> Vec<Waiter> {
    let first = turnstile
        .holders
        .into_iter()
        .map(|Holder { id, owner, client, mode, since, .. }| Waiter::new(id, owner, client, mode, since));
    first.chain(turnstile.queue).collect()
}
