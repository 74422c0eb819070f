//! Renewal: one heartbeat for all, and a look only at what has changed. Watches tell that: a lock that nobody touches costs nothing.

use std::sync::Arc;

use ylock_core::Result;
use ylock_core::engine::{AcquisitionId, Holding, LossReason, Release, Renewal, Request, valid_until};
use ylock_core::environment::Moment;
use ylock_core::{Error, ErrorKind, Mode};

use crate::claims::{Begun, Claim, Stand};
use crate::driver::{Fault, Session, had_no_effect, to_error};
use crate::judge;
use crate::leaving;
use crate::making::{find, names};
use crate::node::{Content, Name};
use crate::place::Place;
use crate::watch::Watch;

/// A heartbeat of which no more than this part of the session has passed serves for renewals that come later: the lease counts from
/// it. Locks that were taken one after the other are due one after the other, and each would want a heartbeat of its own. At most
/// twenty for each session they are so, besides the six that it needs; and since the keeper counts from the same moment, a renewal
/// comes earlier by a twentieth of the session at most, which is less than a fifth of the time between two.
const FRESH_PART: u32 = 20;

/// What a renewal needs to know of a claim.
struct Held {
    stand: Stand,
    place: Place,
    /// Until when what was shown last may be relied on.
    until: Moment,
    next: Option<AcquisitionId>,
}

/// Renews one grant. All that ask while a heartbeat is on its way share the next one, or that one if it will do.
pub(crate) async fn renew(session: &Arc<Session>, holding: &Holding) -> Result<Renewal> {
    let settled = session.claims.with(holding.grant.id, is_settled) == Some(true);
    let beat = session.beat_unless(|sent| {
        let fresh = session.now().since(sent) < session.timeout() / FRESH_PART;
        settled && fresh && sent >= holding.grant.sent
    });
    let sent = match beat.await {
        Ok(sent) => sent,
        Err(_) if session.is_over() => return Ok(Renewal::Lost(LossReason::Gone)),
        Err(fault) => return Err(to_error(fault)),
    };
    let id = holding.grant.id;
    let Some(held) = session.claims.with(id, |claim| look_at(claim, holding)) else {
        return Ok(Renewal::Lost(LossReason::Gone));
    };
    if held.until <= session.now() {
        return Ok(Renewal::Lost(LossReason::Lapsed));
    }
    let own = match held.stand {
        Stand::Leaving => return Ok(Renewal::Lost(LossReason::Gone)),
        Stand::At(own) => own,
        Stand::Unknown => match find(session, &held.place, id).await? {
            Some(own) => own,
            None => return Ok(Renewal::Lost(LossReason::Gone)),
        },
    };
    if let Some(reason) = lost(session, &held.place, &own).await? {
        return Ok(Renewal::Lost(reason));
    }
    if own.tag.mode != holding.grant.mode && holding.grant.mode == Mode::Read {
        downgrade(session, &held.place, &own, holding).await?;
    }
    stand_behind(session, &held, holding).await?;
    let contended = contended(session, &held.place, id).await?;
    let still = session.claims.with(id, |claim| {
        claim.shown = sent.max(claim.shown);
        claim.stand != Stand::Leaving
    });
    match still {
        Some(true) => Ok(Renewal::Renewed { sent, contended }),
        _ => Ok(Renewal::Lost(LossReason::Gone)),
    }
}

/// Whether nothing is to be looked at, and a watch tells if there is: then the node was there when the last heartbeat was handled,
/// because what happened before that has been heard. A reader's renewal tells also who waits, and that must not be older than its
/// question.
fn is_settled(claim: &mut Claim) -> bool {
    claim.tag.mode == Mode::Write && claim.own.is_quiet()
}

fn look_at(claim: &mut Claim, holding: &Holding) -> Held {
    Held {
        stand: claim.stand,
        place: claim.place.clone(),
        until: valid_until(claim.shown, holding.grant.lease),
        next: claim.next,
    }
}

/// Whether somebody took the lock away, or removed its node.
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

/// Shows a reader where a writer was, at the same place: who waits behind does not get in between.
async fn downgrade(session: &Session, place: &Place, own: &Name, holding: &Holding) -> Result<()> {
    let mut name = *own;
    name.tag.mode = Mode::Read;
    let content = session.claims.with(own.tag.id, |claim| {
        if claim.stand != Stand::At(*own) {
            return None;
        }
        // The number of the new node's transaction is not the token that the holder has.
        claim.content.token = holding.grant.token;
        claim.stand = Stand::Unknown;
        Some((claim.number, claim.content.write()))
    });
    let Some((number, content)) = content.flatten() else { return Err(left_meanwhile()) };
    let request = session.rename(place, own, &name, &content);
    let sent = session.claims.send(own.tag.id, number, request).ok_or_else(left_meanwhile)?;
    sent.answer().await.map_err(to_error)?;
    session.claims.with(own.tag.id, |claim| {
        if claim.stand == Stand::Unknown {
            (claim.stand, claim.tag) = (Stand::At(name), name.tag);
        }
        (claim.own, claim.others) = (Watch::default(), Watch::default());
    });
    Ok(())
}

/// Shows somebody of this client who waits behind, and nobody who does not any more.
async fn stand_behind(session: &Arc<Session>, held: &Held, holding: &Holding) -> Result<()> {
    let (id, next) = (holding.grant.id, holding.next.as_ref());
    if let Some(before) = held.next.filter(|before| next.is_none_or(|next| next.id != *before)) {
        let _: Release = leaving::leave(session, &holding.grant.key, before).await?;
    }
    let Some(next) = next else {
        session.claims.with(id, |claim| claim.next = None);
        return Ok(());
    };
    let known = session.claims.with(id, |claim| {
        claim.next = Some(next.id);
        claim.stand != Stand::Leaving
    });
    if known != Some(true) {
        return Err(left_meanwhile());
    }
    announce(session, &held.place, next).await
}

async fn announce(session: &Arc<Session>, place: &Place, next: &Request) -> Result<()> {
    match session.claims.begin(session, next)? {
        Begun::New(number) => join(session, place, next.id, number).await,
        Begun::Old(Stand::Unknown) => match find(session, place, next.id).await? {
            Some(_) => Ok(()),
            None => Err(left_meanwhile()),
        },
        Begun::Old(_) => Ok(()),
    }
}

/// The lock's node is there: the grant's own is in it.
async fn join(session: &Session, place: &Place, id: AcquisitionId, number: u64) -> Result<()> {
    let claim = session.claims.with(id, |claim| (claim.tag, claim.content.write()));
    let Some((tag, content)) = claim else { return Err(left_meanwhile()) };
    let request = session.join(place, &tag, &content);
    let sent = session.claims.send(id, number, request).ok_or_else(left_meanwhile)?;
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

/// Whether somebody who conflicts waits elsewhere. Only readers need to know: whether more of them may join.
async fn contended(session: &Session, place: &Place, id: AcquisitionId) -> Result<bool> {
    let known = session.claims.with(id, |claim| {
        let is_known = claim.tag.mode == Mode::Write || claim.others.is_quiet();
        is_known.then_some(claim.contended)
    });
    if let Some(known) = known.flatten() {
        return Ok(known);
    }
    let (all, told) = session.list_and_watch(place).await.map_err(to_error)?;
    let all = names(&all)?;
    let contended = session.claims.with(id, |claim| {
        let Stand::At(own) = claim.stand else { return false };
        claim.contended = judge::is_contended(&all, &own, claim.next);
        claim.others = Watch::on(told);
        claim.contended
    });
    Ok(contended.unwrap_or(false))
}

fn left_meanwhile() -> Error {
    Error::new(ErrorKind::Indeterminate, "the grant was given back while it was being renewed")
}
