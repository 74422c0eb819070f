//! The way out: undoing an acquisition, for good.

use std::sync::Arc;
use std::time::Duration;

use ylock_core::backoff::Backoff;
use ylock_core::engine::{AcquisitionId, Release, Request};
use ylock_core::records::Left;
use ylock_core::{Key, Result};

use crate::client::Client;
use crate::driver::{Call, Function, Value, unavailable};
use crate::words::{alive, mode_word};

/// The time for which a request without an answer may still be on its way: longer than any connection holds it back.
const LATE: Duration = Duration::from_secs(60);
/// The pauses between two requests about a lock that a transaction of a program keeps as it is.
const PAUSES: Backoff = Backoff::new(Duration::from_millis(5), Duration::from_millis(100));

/// Undoes all that there is of an acquisition, for good, and lets `next` join the queue.
pub(crate) async fn release(
    client: &Client,
    key: &Key,
    id: AcquisitionId,
    next: Option<&Request>,
) -> Result<Release> {
    let late = match client.records.end(id) {
        // `next`, if there is one, asks by itself.
        Left::Nothing => return Ok(Release::WasGone),
        Left::Answered => Duration::ZERO,
        Left::InDoubt => LATE,
    };
    let call = Call::at(Function::Release, key).with(Value::id(id)).time(late);
    let was_there = match next {
        None => ask(client, without_next(call)).await?,
        Some(next) => {
            // This request may let `next` in: a copy of it may arrive after `next` was undone.
            let mark = client.records.begin(next.id);
            let answer = ask(client, with_next(client, call, next)).await?;
            mark.answered();
            answer
        }
    };
    Ok(if was_there { Release::Released } else { Release::WasGone })
}

/// Asks until no transaction of a program has the lock, or asserts its holder, which as a rule is soon. Here, and not on the server, because there other
/// requests would stand behind this one.
async fn ask(client: &Client, call: Call) -> Result<bool> {
    let until = client.now().plus(client.store.request_timeout());
    for earlier in 0.. {
        if let Some(was_there) = client.store.call(call.clone()).await?.value()? {
            return Ok(was_there);
        }
        if client.now().plus(PAUSES.pause(earlier)) >= until {
            break;
        }
        PAUSES.wait(&*client.environment, earlier).await;
    }
    Err(unavailable("a transaction has the lock, or asserts its holder"))
}

/// Gives back a grant of which a message came and which no acquisition of this client waits for or has: it was caused by a request that
/// came late, or is being given back at this moment. Left alone, it would keep other contenders out for a lease.
pub(crate) fn release_unwanted(client: &Arc<Client>, key: Key, id: AcquisitionId) {
    let (environment, client) = (Arc::clone(&client.environment), Arc::clone(client));
    environment.spawn_for_all(Box::pin(async move {
        if let Err(error) = release(&client, &key, id, None).await {
            tracing::debug!(
                error = format!("{error:#}"),
                "a grant that no caller waits for could not be given back; it ends with its lease"
            );
        }
    }));
}

fn with_next(client: &Client, call: Call, next: &Request) -> Call {
    call.with(Value::id(next.id))
        .word(mode_word(next.mode))
        .time(next.lease)
        .ticket(next.ticket)
        .time(alive(next))
        .with(Value::owner(next.owner))
        .with(Value::Number(client.channel()))
        .with(Value::text(next.client.as_str()))
}

fn without_next(call: Call) -> Call {
    call.with(Value::Identity(None))
        .with(Value::Text(None))
        .with(Value::Number(None))
        .ticket(None)
        .with(Value::Number(None))
        .with(Value::Identity(None))
        .with(Value::Number(None))
        .with(Value::Text(None))
}
