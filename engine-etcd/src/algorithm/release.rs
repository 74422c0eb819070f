//! The way out: of a grant, of the queue, or of an acquisition whose outcome is unknown.

use std::sync::Arc;

use ylock_core::Result;
use ylock_core::backoff::Backoff;
use ylock_core::engine::{AcquisitionId, Release, Request};

use super::claims::GivenUp;
use super::client::Client;
use super::contender::Content;
use super::store::{Condition, Fault, Keys, Look, Put, Step, Transaction, to_error};

/// Removes what the acquisition has in the store, for good. With `next`, which is on its way in, its key is put in the same transaction.
pub(crate) async fn release(
    client: &Arc<Client>,
    id: AcquisitionId,
    next: Option<&Request>,
) -> Result<Release> {
    let stay = next.map(|next| (next.id, client.environment.now()));
    // None: this client has sent nothing for it, or nothing is left of it.
    let found = client.claims.give_up(id, stay, client.due());
    let mut leaver = Leaver { client, id, number: found.as_ref().map(|found| found.number) };
    let former = remove_former(client, id).await?;
    let Some(found) = found else { return Ok(former.unwrap_or(Release::WasGone)) };
    let was_there = attempt(client, &found, next).await?;
    leaver.number = None;
    Ok(if was_there { Release::Released } else { Release::WasGone })
}

/// Removes what is left of the place that the acquisition has given up to go on at another one, if it has. The cleaner would as well, in its own time.
pub(super) async fn remove_former(client: &Arc<Client>, id: AcquisitionId) -> Result<Option<Release>> {
    let Some(former) = client.claims.former(id) else { return Ok(None) };
    let Some(found) = client.claims.give_up(former, None, client.due()) else { return Ok(None) };
    let mut leaver = Leaver { client, id: former, number: Some(found.number) };
    let was_there = attempt(client, &found, None).await?;
    leaver.number = None;
    Ok(Some(if was_there { Release::Released } else { Release::WasGone }))
}

/// Gives the place of a contender up and takes one at the end, in one transaction: of two, a contender that came later could enter in between. What a
/// transaction that fails has left is removed [first](remove_former) when the acquisition goes on, or is released.
pub(super) async fn give_way(client: &Arc<Client>, request: &Request, number: u64) -> Result<()> {
    let as_other = AcquisitionId::new(&*client.environment);
    let Some(found) = client.claims.depart((request.id, number), as_other, client.due()) else {
        return release(client, request.id, None).await.map(drop);
    };
    let mut leaver = Leaver { client, id: found.id, number: Some(found.number) };
    attempt(client, &found, Some(request)).await?;
    leaver.number = None;
    Ok(())
}

/// Makes one attempt to remove a claim for which no caller waits.
pub(super) async fn remove(client: &Arc<Client>, found: GivenUp) {
    let mut leaver = Leaver { client, id: found.id, number: Some(found.number) };
    if let Err(error) = attempt(client, &found, None).await {
        tracing::debug!(error = format!("{error:#}"), "a key that is not wanted could not be removed yet");
        let pause = client.environment.jitter(Backoff::RELEASE.pause(found.attempts));
        client.claims.postpone(found.id, found.number, client.environment.now().plus(pause));
    }
    leaver.number = None;
}

/// A task that removes a claim. If it is dropped before the end, the claim is the cleaner's.
struct Leaver<'a> {
    client: &'a Client,
    id: AcquisitionId,
    /// `None` once the task has come to its end.
    number: Option<u64>,
}

impl Drop for Leaver<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.client.claims.postpone(self.id, number, self.client.environment.now());
        }
    }
}

/// Makes one attempt to remove a claim. Returns whether its key was there.
async fn attempt(client: &Arc<Client>, found: &GivenUp, next: Option<&Request>) -> Result<bool> {
    // What was not seen to be made is gone with the lease under which it was to be made, and a late request can put none.
    let is_nothing = found.place.is_none() && (!found.is_in_doubt || found.begun_in.is_over());
    if is_nothing || client.is_closed() {
        client.claims.end(found.id, found.number);
        return Ok(false);
    }
    let removed = match (found.place, next) {
        (Some(place), Some(next)) if !found.is_in_doubt => hand_on(client, found, place, next).await,
        _ => remove_own(client, found).await,
    };
    let was_there = match removed {
        Ok(was_there) => was_there,
        Err(Fault::LeaseGone) => false,
        Err(fault) => return Err(to_error(fault)),
    };
    client.claims.end(found.id, found.number);
    Ok(was_there)
}

/// Deletes the key. If a request that puts it may still arrive, the mark that forbids it is put as well, under the lease of that request: it is there for
/// as long as such a request could do anything. Never without the place: a late copy of this request must not delete what the next acquisition has put
/// at the same key.
async fn remove_own(client: &Client, found: &GivenUp) -> Result<bool, Fault> {
    let mark = || {
        // Also where the answer says that it was not put, or none comes: rather too many than too few.
        found.begun_in.note_mark();
        let key = client.names.mark(found.id, found.number);
        Step::Put(Put { key, value: Vec::new(), lease: Some(found.begun_in.lease) })
    };
    let own = Keys::one(found.stored_at.clone());
    let place = match found.place {
        Some(place) => place,
        None => {
            let then = vec![mark(), Step::Look(Look::at(own.clone()))];
            let marking = Transaction { then, ..Transaction::default() };
            let mut outcome = found.begun_in.transact(client, "mark", marking).await?;
            let entries = outcome.seen(1).entries;
            match Content::place_of(&entries, found.id, found.number).map_err(Fault::Refused)? {
                Some(place) => place,
                None => return Ok(false),
            }
        }
    };
    let delete = |marks: Option<Step>| Transaction {
        when: vec![Condition::MadeAt(own.clone(), place)],
        then: [Step::Delete(found.stored_at.clone())].into_iter().chain(marks.clone()).collect(),
        otherwise: marks.into_iter().collect(),
    };
    if found.is_in_doubt && !found.begun_in.is_over() {
        match found.begun_in.transact(client, "release", delete(Some(mark()))).await {
            // The key may have gone to a younger lease. A request that puts it can do nothing any more.
            Err(Fault::LeaseGone) => {}
            deleted => return Ok(deleted?.has_deleted()),
        }
    }
    Ok(found.session.transact(client, "release", delete(None)).await?.has_deleted())
}

/// Deletes the key and puts that of `next` at the end of the queue, in one transaction.
async fn hand_on(client: &Arc<Client>, found: &GivenUp, place: i64, next: &Request) -> Result<bool, Fault> {
    let own = || found.session.serves(next.lease).then(|| Arc::clone(&found.session));
    // `next` needs another lease.
    let Some(session) = client.young(next.lease).or_else(own) else { return remove_own(client, found).await };
    // `next` has its place already.
    let Some(number) = client.claims.begin(client.begin(&session), next) else {
        return remove_own(client, found).await;
    };
    let Some(sending) = client.claims.send(next.id, number) else { return remove_own(client, found).await };
    let put = Put { key: sending.stored_at.clone(), value: sending.value, lease: Some(session.lease) };
    let transaction = Transaction {
        when: vec![
            Condition::MadeAt(Keys::one(found.stored_at.clone()), place),
            Condition::MadeAt(Keys::one(client.names.mark(next.id, number)), 0),
            Condition::MadeAt(Keys::one(sending.stored_at.clone()), 0),
        ],
        then: vec![Step::Delete(found.stored_at.clone()), Step::Put(put)],
        otherwise: vec![Step::Look(Look::at(Keys::one(sending.stored_at)))],
    };
    match session.transact(client, "hand_on", transaction).await {
        Ok(outcome) if outcome.held => {
            client.claims.answered(next.id, number, Some(outcome.header.revision));
            Ok(true)
        }
        Ok(mut outcome) => {
            let place =
                Content::place_of(&outcome.seen(0).entries, next.id, number).map_err(Fault::Refused)?;
            client.claims.answered(next.id, number, place);
            client.claims.end_unsent(next.id, number);
            remove_own(client, found).await
        }
        Err(Fault::Refused(error)) => {
            client.claims.answered(next.id, number, None);
            client.claims.end_unsent(next.id, number);
            Err(Fault::Refused(error))
        }
        // Nothing was done, and the key of the one that leaves may have gone to a younger lease.
        Err(Fault::LeaseGone) => {
            client.claims.lease_gone(next.id, number);
            remove_own(client, found).await
        }
        Err(fault) => Err(fault),
    }
}
