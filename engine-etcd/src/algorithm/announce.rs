//! The place of a waiter behind a grant of its own client: shown in the queue, so that contenders of other clients that come later stay behind it.
//! The place belongs to the grant and goes with it, see [`Claims::begin_behind`](super::claims::Claims::begin_behind).

use std::sync::Arc;

use ylock_core::Result;
use ylock_core::engine::{AcquisitionId, Holding, Request};

use super::claims::Begun;
use super::client::Client;
use super::contender::Content;
use super::moves;
use super::session::Session;
use super::store::{Condition, Fault, Keys, Look, Put, Step, Transaction};

/// Makes the store show the waiter behind a grant, and no waiter that has gone. This is a matter of order only: the next renewal tries again,
/// and no renewal fails because of it.
pub(super) async fn show(client: &Arc<Client>, session: &Arc<Session>, holding: &Holding) {
    client.claims.withdraw(holding.grant.id, holding.next.as_ref().map(|next| next.id));
    let Some(next) = &holding.next else { return };
    if let Err(error) = announce(client, session, holding.grant.id, next).await {
        tracing::debug!(
            error = format!("{error:#}"),
            "a waiter could not be shown behind the holder of its client; the next renewal tries again"
        );
    }
}

/// Puts the key of a waiter that has its place under a young lease.
async fn stay(client: &Arc<Client>, next: &Request) -> Result<()> {
    if let Some(number) = client.claims.with_any(next.id, |claim| claim.number) {
        moves::refresh(client, next.id, number, next.lease).await?;
    }
    Ok(())
}

async fn announce(
    client: &Arc<Client>,
    session: &Arc<Session>,
    grant: AcquisitionId,
    next: &Request,
) -> Result<()> {
    let Some(Begun { session, number }) = client.claims.begin_behind(client.begin(session), grant, next)
    else {
        return stay(client, next).await;
    };
    let Some(sending) = client.claims.send(next.id, number) else { return Ok(()) };
    let (own, mark) = (Keys::one(sending.stored_at.clone()), Keys::one(client.names.mark(next.id, number)));
    let put = Put { key: sending.stored_at, value: sending.value, lease: Some(session.lease) };
    let transaction = Transaction {
        when: vec![Condition::MadeAt(mark, 0), Condition::MadeAt(own.clone(), 0)],
        then: vec![Step::Put(put)],
        otherwise: vec![Step::Look(Look::at(own))],
    };
    match session.transact(client, "announce", transaction).await {
        Ok(mut outcome) => {
            let found = Content::place_of(&outcome.seen(0).entries, next.id, number)?;
            let place = if outcome.held { Some(outcome.header.revision) } else { found };
            client.claims.answered(next.id, number, place);
            Ok(())
        }
        Err(Fault::Refused(error)) => {
            client.claims.answered(next.id, number, None);
            client.claims.end_unsent(next.id, number);
            Err(error)
        }
        // The next renewal begins anew, under a lease that is there.
        Err(Fault::LeaseGone) => {
            client.claims.lease_gone(next.id, number);
            Ok(())
        }
        Err(Fault::Unknown(error)) => Err(error),
    }
}
