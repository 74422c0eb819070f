//! Renewal: one heartbeat for all grants, and a look only at what has changed. Watches tell that: a lock on which nothing changes costs
//! nothing.

use std::sync::Arc;

use ylock_core::Result;
use ylock_core::engine::{AcquisitionId, Holding, LossReason, Renewal, valid_until};
use ylock_core::environment::Moment;
use ylock_core::{Error, ErrorKind, Mode};

use super::announce;
use super::claim::{Claim, Node};
use super::create::{find, names};
use super::judge;
use super::node::{Content, Name};
use super::place::Place;
use super::session::Session;
use super::store::{Fault, to_error};
use super::watch::Watch;

/// The part of the session's timeout for which a heartbeat also serves renewals that come after it: their leases count from it. Locks that
/// were taken one after the other are due one after the other, and each would want a heartbeat of its own. So there are twenty for each
/// timeout at most, besides the ten that the session needs; and since the keeper counts from the same moment, a renewal comes earlier by
/// a twentieth of the timeout at most, which is less than a fifth of the time between two renewals.
const FRESH_PART: u32 = 20;
/// The part of a lease for which a heartbeat serves its renewals at most: a lease may be far shorter than the session.
const SHORTEST_FRESH_PART: u32 = 12;
/// The number of times that a change of a node is tried if it meets another change.
const ATTEMPTS: u32 = 8;

/// The part of a claim that a renewal needs to know.
struct Held {
    node: Node,
    place: Place,
    /// The end of the time for which the last confirmation may be relied on.
    until: Moment,
}

const GONE: Renewal = Renewal::Lost(LossReason::Gone);

/// Renews one grant. All renewals that come while a heartbeat is on its way share the next one, or that one if it will do.
pub(crate) async fn renew(session: &Arc<Session>, holding: &Holding) -> Result<Renewal> {
    let sent = match beat(session, holding).await {
        Ok(sent) => sent,
        Err(_) if session.is_over() => return Ok(GONE),
        Err(error) => return Err(error),
    };
    let id = holding.grant.id;
    let held = session.claims.with(id, |claim| look_at(claim, holding)).flatten();
    let Some(held) = held else { return Ok(GONE) };
    if held.until <= session.now() {
        return Ok(Renewal::Lost(LossReason::Lapsed));
    }
    let own = match held.node {
        Node::At(own) => own,
        Node::Unknown => match find(session, &held.place, id).await? {
            Some(own) => own,
            None => return Ok(GONE),
        },
    };
    if let Some(reason) = lost(session, &held.place, &own).await? {
        return Ok(Renewal::Lost(reason));
    }
    if own.tag.mode != holding.grant.mode
        && holding.grant.mode == Mode::Read
        && let Some(reason) = downgrade(session, &held.place, &own, holding).await?
    {
        return Ok(Renewal::Lost(reason));
    }
    announce::show(session, &held.place, holding).await;
    let contended = contended(session, &held.place, id).await?;
    let still = session.claims.with(id, |claim| {
        claim.shown = sent.max(claim.shown);
        claim.is_wanted()
    });
    Ok(if still == Some(true) { Renewal::Renewed { sent, contended } } else { GONE })
}

/// Sends a heartbeat, or finds one that will do. Returns the moment from which this renewal counts.
async fn beat(session: &Session, holding: &Holding) -> Result<Moment> {
    let settled = session.claims.with(holding.grant.id, is_settled) == Some(true);
    let lease = holding.grant.lease;
    let fresh = (session.timeout() / FRESH_PART).min(lease / SHORTEST_FRESH_PART);
    let beat = session.beat_unless(|last| settled && session.now().since(last.sent) < fresh).await;
    Ok(beat.map_err(to_error)?.counts(lease, session.timeout()))
}

/// Returns whether nothing is to be looked at, and a watch tells if there is: then the node was there when the last heartbeat was handled,
/// because what happened before that has been heard. Nor is that heartbeat older than the grant: the watch was set by an earlier renewal of
/// the grant, which had sent a heartbeat of its own. (An acquisition that is asked for again while it is granted may count from a later
/// write than that; then the later moment stays, see `shown`.) A reader's renewal also tells whether a writer waits, and that must not be
/// older than the renewal.
fn is_settled(claim: &mut Claim) -> bool {
    claim.tag.mode == Mode::Write && claim.own.is_quiet()
}

/// Returns what a renewal needs to know of a claim; `None` if the claim is being given back.
fn look_at(claim: &mut Claim, holding: &Holding) -> Option<Held> {
    let until = valid_until(claim.shown, holding.grant.lease);
    claim.is_wanted().then(|| Held { node: claim.node, place: claim.place.clone(), until })
}

/// Returns why the lock is lost, if it is: it was revoked, or its node was removed.
async fn lost(session: &Session, place: &Place, own: &Name) -> Result<Option<LossReason>> {
    let id = own.tag.id;
    if session.claims.with(id, |claim| claim.own.is_quiet()) == Some(true) {
        return Ok(None);
    }
    match session.read_and_watch(&place.child(&own.to_string())).await {
        Ok((content, told)) => {
            if Content::read(&content)?.revoked {
                return Ok(Some(LossReason::Revoked));
            }
            session.claims.with(id, |claim| claim.own = Watch::on(told));
            Ok(None)
        }
        Err(Fault::NoNode) => Ok(Some(LossReason::Gone)),
        Err(fault) => Err(to_error(fault)),
    }
}

/// Shows a reader where a writer was, at the same place: a contender that waits behind does not get in between. Returns why the lock is
/// lost, if it is.
///
/// The old node is replaced only if it says what was read of it: if another client has written to it, it is read again. So a revocation
/// either is found, or comes later and goes to the new node: a client that revokes looks again when the node that it writes to is gone.
async fn downgrade(
    session: &Session,
    place: &Place,
    own: &Name,
    holding: &Holding,
) -> Result<Option<LossReason>> {
    let mut name = *own;
    name.tag.mode = Mode::Read;
    for _ in 0..ATTEMPTS {
        // The number of the new node's transaction is not the token that the holder has.
        let departed = session.claims.depart(*own, |content| content.token = holding.grant.token);
        let Some((number, content, version)) = departed else { return Err(left_meanwhile()) };
        let request = session.rename(place, (own, version), &name, &content);
        let sent = session.claims.send(own.tag.id, number, request).ok_or_else(left_meanwhile)?;
        match sent.answer().await {
            Ok(()) => {
                session.claims.replaced(number, name);
                return Ok(None);
            }
            Err(Fault::BadVersion) => match session.read(&place.child(&own.to_string())).await {
                Ok(stored) if Content::read(&stored.content)?.revoked => {
                    session.claims.stays(number, *own, version);
                    return Ok(Some(LossReason::Revoked));
                }
                Ok(stored) => session.claims.stays(number, *own, stored.version),
                Err(Fault::NoNode) => return Ok(Some(LossReason::Gone)),
                Err(fault) => return Err(to_error(fault)),
            },
            Err(Fault::NoNode) => return Ok(Some(LossReason::Gone)),
            Err(fault) => return Err(to_error(fault)),
        }
    }
    Err(Error::new(ErrorKind::Unavailable, "other clients kept changing the lock"))
}

/// Returns whether a contender that conflicts waits elsewhere. Only readers need to know: it decides whether more of them may join.
async fn contended(session: &Session, place: &Place, id: AcquisitionId) -> Result<bool> {
    let known = session.claims.with(id, |claim| {
        let is_known = claim.tag.mode == Mode::Write || claim.others.is_quiet();
        is_known.then_some(claim.contended)
    });
    match known {
        Some(Some(known)) => return Ok(known),
        Some(None) => {}
        // The grant has been given back meanwhile, and the lock's node may have gone with it.
        None => return Ok(false),
    }
    let (all, told) = session.list_and_watch(place).await.map_err(to_error)?;
    let all = names(&all)?;
    let contended = session.claims.with(id, |claim| {
        let Node::At(own) = claim.node else { return false };
        claim.contended = judge::is_contended(&all, &own, claim.next);
        claim.others = Watch::on(told);
        claim.contended
    });
    Ok(contended.unwrap_or(false))
}

fn left_meanwhile() -> Error {
    Error::new(ErrorKind::Indeterminate, "the grant was given back while it was being renewed")
}
