//! The way out: undoing an acquisition, for good.

use std::sync::Arc;
use std::time::Duration;

use ylock_core::engine::{AcquisitionId, Release, Request};
use ylock_core::records::Left;
use ylock_core::{Key, Result};

use crate::client::Client;
use crate::driver::{Call, scripts};
use crate::words::{alive, mode_word, ticket_word};

/// The time for which a request without an answer may still be on its way: longer than any connection holds it back.
const LATE: Duration = Duration::from_secs(60);

/// Undoes all that there is of an acquisition, for good, and lets `next` join the queue.
pub(crate) async fn release(
    client: &Client,
    key: &Key,
    id: AcquisitionId,
    next: Option<&Request>,
) -> Result<Release> {
    let was_there = undo(client, client.place(key), id, next).await?;
    Ok(if was_there { Release::Released } else { Release::WasGone })
}

/// Gives back a grant of which a message came and which no acquisition of this client waits for or has: it was caused by a request that
/// came late, or is being given back at this moment. Left alone, it would keep other contenders out for a lease.
pub(crate) fn release_unwanted(client: &Arc<Client>, place: String, id: AcquisitionId) {
    let (environment, client) = (Arc::clone(&client.environment), Arc::clone(client));
    environment.spawn_for_all(Box::pin(async move {
        if let Err(error) = undo(&client, place, id, None).await {
            tracing::debug!(
                error = format!("{error:#}"),
                "a grant that no caller waits for could not be given back; it ends with its lease"
            );
        }
    }));
}

/// Undoes an acquisition, and lets `next` join the queue. Returns whether there was a grant or a place. All releases go through here.
async fn undo(client: &Client, place: String, id: AcquisitionId, next: Option<&Request>) -> Result<bool> {
    let late = match client.records.end(id) {
        // `next`, if there is one, asks by itself.
        Left::Nothing => return Ok(false),
        Left::Answered => Duration::ZERO,
        Left::InDoubt => LATE,
    };
    let call = Call::at(&scripts::RELEASE, place).id(id).arg(late.as_millis());
    let Some(next) = next else { return client.store.call(call).await?.flag() };
    // This request may let `next` in: a copy of it may arrive after `next` was undone.
    let mark = client.records.begin(next.id);
    let was_there = client.store.call(with_next(client, call, next)).await?.flag();
    mark.answered();
    was_there
}

fn with_next(client: &Client, call: Call, next: &Request) -> Call {
    let channel = client.channel(call.place());
    call.id(next.id)
        .arg(mode_word(next.mode))
        .arg(next.lease.as_millis())
        .arg(&*ticket_word(next.ticket))
        .arg(alive(next).as_millis())
        .owner(next.owner)
        .arg(&*channel)
        .arg(next.client.as_str())
        .arg(client.eviction)
}
