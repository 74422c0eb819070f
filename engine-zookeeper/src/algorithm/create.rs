//! Making a contender's node, and finding it again when the answer got lost.

use ylock_core::Result;
use ylock_core::engine::AcquisitionId;

use super::judge;
use super::node::Name;
use super::place::{self, Place};
use super::requests::NewNode;
use super::session::Session;
use super::store::{Fault, to_error};

/// Makes the node of a claim. Returns also whether it is alone in its lock; `None` if the lock's node came or went in between.
///
/// An idle lock has no node. A contender that makes the lock's node in the same transaction is alone, and has nothing to look at.
pub(crate) async fn make(
    session: &Session,
    place: &Place,
    id: AcquisitionId,
    number: u64,
) -> Result<Option<(NewNode, bool)>, Fault> {
    let claims = &session.claims;
    let claim = claims.with(id, |claim| (claim.tag, claim.content.write(), place::exact(&claim.key)));
    let Some((tag, content, key)) = claim else { return Ok(None) };
    if !session.lock_nodes.is_busy(place) {
        let Some(sent) = claims.send(id, number, session.make_both(place, &key, &tag, &content)) else {
            return Ok(None);
        };
        match sent.answer().await {
            Ok(made) => return Ok(Some((made, true))),
            Err(Fault::NodeExists) => {}
            Err(Fault::NoNode) => {
                session.make(&place.bucket).await?;
                claims.end_unknown(id, number);
                return Ok(None);
            }
            Err(fault) => return Err(fault),
        }
    }
    // Another task may have begun to remove the claim since.
    let Some(sent) = claims.send(id, number, session.join(place, &tag, &content)) else { return Ok(None) };
    match sent.answer().await {
        Ok(made) => {
            session.lock_nodes.note_busy(place, true);
            Ok(Some((made, false)))
        }
        Err(Fault::NoNode) => {
            session.lock_nodes.note_busy(place, false);
            claims.end_unknown(id, number);
            Ok(None)
        }
        Err(fault) => Err(fault),
    }
}

/// Finds the node of a claim, if a request that was not answered has made it.
pub(crate) async fn find(session: &Session, place: &Place, id: AcquisitionId) -> Result<Option<Name>> {
    let Some(number) = session.claims.with(id, |claim| claim.number) else { return Ok(None) };
    let all = names(&session.list_after_all(place).await.map_err(to_error)?)?;
    let found = session.claims.with(id, |claim| {
        let found = judge::find(&all, &claim.tag).filter(|_| claim.is_open(number))?;
        claim.settle(found);
        claim.alone = all.len() == 1;
        Some(found)
    });
    if found.flatten().is_none() {
        session.claims.end_unknown(id, number);
    }
    Ok(found.flatten())
}

pub(crate) fn names(all: &[String]) -> Result<Vec<Name>> {
    all.iter().map(|name| Name::read(name)).collect()
}
