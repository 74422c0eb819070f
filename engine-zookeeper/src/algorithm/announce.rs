//! The place of a waiter behind a grant of its own client: shown in the queue, so that contenders of other clients that come later stay
//! behind it. The place belongs to the grant and goes with it, see [`Claims::begin_behind`](super::claims::Claims::begin_behind).

use std::sync::Arc;

use ylock_core::Result;
use ylock_core::engine::{AcquisitionId, Holding, Request};

use super::claim::Node;
use super::claims::Begun;
use super::create::find;
use super::place::Place;
use super::session::Session;
use super::store::{had_no_effect, to_error};

/// Makes the store show the waiter behind a grant, and no waiter that has gone. This is a matter of order only: the next renewal tries
/// again, and no renewal fails because of it.
pub(crate) async fn show(session: &Arc<Session>, place: &Place, holding: &Holding) {
    session.claims.withdraw(holding.grant.id, holding.next.as_ref().map(|next| next.id));
    let Some(next) = &holding.next else { return };
    if let Err(error) = announce(session, place, holding.grant.id, next).await {
        tracing::debug!(
            error = format!("{error:#}"),
            "a waiter could not be shown behind the holder of its client; the next renewal tries again"
        );
    }
}

async fn announce(session: &Arc<Session>, place: &Place, grant: AcquisitionId, next: &Request) -> Result<()> {
    match session.claims.begin_behind(session.begin(), grant, next)? {
        Some(Begun::New(number)) => join(session, place, next.id, number).await,
        Some(Begun::Old(Node::Unknown)) => find(session, place, next.id).await.map(drop),
        Some(Begun::Old(Node::At(_)) | Begun::BeingRemoved) | None => Ok(()),
    }
}

/// Makes the waiter's node. The lock's node is there, because the grant's own is in it.
async fn join(session: &Session, place: &Place, id: AcquisitionId, number: u64) -> Result<()> {
    let claim = session.claims.with(id, |claim| (claim.tag, claim.content.write()));
    let Some((tag, content)) = claim else { return Ok(()) };
    let request = session.join(place, &tag, &content);
    let Some(sent) = session.claims.send(id, number, request) else { return Ok(()) };
    match sent.answer().await {
        Ok(made) => {
            session.claims.made(number, &made, false);
            Ok(())
        }
        Err(fault) => {
            if had_no_effect(&fault) {
                session.claims.end_unknown(id, number);
            }
            Err(to_error(fault))
        }
    }
}
