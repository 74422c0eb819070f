//! Inspection, which reads the holders and the queue of a lock from its hash; and revocation.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ylock_core::engine::{AcquisitionId, Holder, Inspection, Waiter};
use ylock_core::{ClientName, Key, Owner, Result, StoreToken};

use crate::client::Client;
use crate::driver::{Answer, scripts};
use crate::identity;
use crate::stored::{Stored, odd};
use crate::words::mode_of;

/// Returns the holders and waiters of a lock.
pub(crate) async fn inspect(client: &Client, key: &Key) -> Result<Inspection> {
    let answer = client.store.call(client.call(&scripts::INSPECT, key)).await?;
    read(answer, client.fencing)
}

/// Returns whether a try to write may get the lock: without the whole hash, in which thousands of acquisitions may be remembered that were undone.
pub(crate) async fn may_be_free(client: &Client, key: &Key) -> Result<bool> {
    client.store.call(client.call(&scripts::MAY_BE_FREE, key)).await?.flag()
}

/// Marks a grant as revoked, so that its holder's next renewal finds out. Returns whether this acquisition held the lock.
pub(crate) async fn revoke(client: &Client, key: &Key, id: AcquisitionId) -> Result<bool> {
    let call = client.call(&scripts::REVOKE, key).id(id);
    client.store.call(call).await?.flag()
}

/// Reads the answer of the script `inspect`.
fn read(mut answer: Answer, fencing: bool) -> Result<Inspection> {
    let now = answer.number()?;
    let stored = Stored::of(&answer.list()?);
    let mut inspection = Inspection::default();
    (inspection.holders, inspection.queue) = (holders(&stored, now, fencing)?, queue(&stored, now)?);
    Ok(inspection)
}

fn holders(stored: &Stored, now: i64, fencing: bool) -> Result<Vec<Holder>> {
    let mut holders = Vec::new();
    for id in stored.holders() {
        let held = stored.holder(id)?;
        if number(held.expires)? <= now {
            continue;
        }
        let token = u64::try_from(number(held.token)?).ok().and_then(StoreToken::new);
        let shown = shown(stored, id, held.mode, held.since)?;
        holders.push((token, Holder::of(shown, token.filter(|_| fencing).map(Into::into))));
    }
    holders.sort_by_key(|(token, _)| *token);
    Ok(holders.into_iter().map(|(_, holder)| holder).collect())
}

fn queue(stored: &Stored, now: i64) -> Result<Vec<Waiter>> {
    let mut queue = Vec::new();
    let mut next = stored.first();
    // Damaged data could lead round and round.
    while let Some(id) = next.filter(|_| queue.len() < stored.len()) {
        let waits = stored.waiter(id)?;
        if number(waits.alive)? > now {
            queue.push(shown(stored, id, waits.mode, waits.since)?);
        }
        next = stored.after(id);
    }
    Ok(queue)
}

/// Reads what a holder and a waiter have in common.
fn shown(stored: &Stored, id: &str, mode: &str, since: &str) -> Result<Waiter> {
    let (owner, client) = stored.who(id)?;
    let owner = identity::read(owner).ok_or_else(|| odd(owner))?;
    let (owner, client) = (Owner::from_bytes(owner.to_be_bytes()), ClientName::stored(client));
    let mode = mode_of(mode).ok_or_else(|| odd(mode))?;
    Ok(Waiter::new(acquisition(id)?, owner, client, mode, time(number(since)?)))
}

fn acquisition(word: &str) -> Result<AcquisitionId> {
    identity::read(word).map(AcquisitionId::from_u128).ok_or_else(|| odd(word))
}

fn number(word: &str) -> Result<i64> {
    word.parse().map_err(|_| odd(word))
}

fn time(millis: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(u64::try_from(millis).unwrap_or_default())
}
