//! Renewal: one keep-alive for all grants of a lease, confirmed by the looks at the grants.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use ylock_core::engine::{Holding, LossReason, Renewal, valid_until};
use ylock_core::environment::Moment;
use ylock_core::{Error, ErrorKind, Mode, Result};

use super::announce;
use super::client::Client;
use super::contender::{Contender, Content};
use super::judge::{Queue, is_contended};
use super::look::{contenders, renewal_steps};
use super::session::{self, Session};
use super::store::{Condition, Entry, Fault, Header, Keys, Look, Put, Seen, Step, Transaction, to_error};

/// The number of grants that are looked at in one transaction: servers take 128 steps in one.
const TOGETHER: usize = 32;
/// The part of the time to live for which a confirmation also serves renewals that come after it: locks that were taken one after the other are
/// due one after the other, and each would want a keep-alive of its own.
const FRESH_PART: u32 = 20;
/// The part of a lease for which a confirmation serves its renewals at most.
const SHORTEST_FRESH_PART: u32 = 12;
/// The number of times that a change of a key is tried if it meets another change.
const ATTEMPTS: u32 = 8;

const GONE: Renewal = Renewal::Lost(LossReason::Gone);

/// A grant that is to be renewed.
struct Held<'a> {
    at: usize,
    holding: &'a Holding,
    number: u64,
    own: Contender,
    /// The end of the time for which the last confirmation may be relied on.
    until: Moment,
}

/// What a look has shown of a grant.
struct Shown {
    own: Option<Entry>,
    behind: Seen,
}

/// The keep-alive of a renewal.
enum Beat {
    /// Not long ago one was confirmed.
    Fresh(Moment),
    Sent(session::Beat),
}

/// Renews grants, and makes the store show what the holdings say.
pub(crate) async fn renew(client: &Arc<Client>, holdings: &[Holding]) -> Vec<Result<Renewal>> {
    let mut answers: Vec<Result<Renewal>> = holdings.iter().map(|_| Ok(GONE)).collect();
    let mut sessions: Vec<(Arc<Session>, Vec<Held<'_>>)> = Vec::new();
    for (at, holding) in holdings.iter().enumerate() {
        let Some((session, held)) = held(client, at, holding) else { continue };
        match sessions.iter_mut().find(|(other, _)| Arc::ptr_eq(other, &session)) {
            Some((_, all)) => all.push(held),
            None => sessions.push((session, vec![held])),
        }
    }
    let renewed = sessions.iter().map(|(session, held)| renew_in(client, session, held));
    for (at, answer) in join_all(renewed).await.into_iter().flatten() {
        answers[at] = answer;
    }
    answers
}

/// Returns what a renewal needs to know of a grant; `None` if the client does not have it any more.
fn held<'a>(client: &Client, at: usize, holding: &'a Holding) -> Option<(Arc<Session>, Held<'a>)> {
    let id = holding.grant.id;
    let held = client.claims.with_any(id, |claim| {
        let own = claim.contender(id).filter(|_| claim.is_wanted())?;
        let until = valid_until(claim.shown, holding.grant.lease);
        Some((Arc::clone(&claim.session), Held { at, holding, number: claim.number, own, until }))
    });
    held.flatten()
}

async fn renew_in(
    client: &Arc<Client>,
    session: &Arc<Session>,
    all: &[Held<'_>],
) -> Vec<(usize, Result<Renewal>)> {
    let every = |answer: Result<Renewal>| all.iter().map(|held| (held.at, answer.clone())).collect();
    let beat = match beat(client, session, all).await {
        Ok(beat) => beat,
        Err(Fault::LeaseGone) => return every(Ok(GONE)),
        Err(fault) => return every(Err(to_error(fault))),
    };
    let looks = join_all(all.chunks(TOGETHER).map(|chunk| look(client, session, chunk))).await;
    // All were sent after the answers of the keep-alive, so any of them may confirm it.
    let header = match looks.iter().find_map(|look| look.as_ref().ok()) {
        Some((header, _)) => *header,
        None => {
            let fault = looks.into_iter().find_map(Result::err);
            return every(fault.map_or(Ok(GONE), |fault| Err(to_error(fault))));
        }
    };
    let sent = match confirm(client, session, beat, &header).await {
        Ok(sent) => sent,
        Err(Fault::LeaseGone) => return every(Ok(GONE)),
        Err(fault) => return every(Err(to_error(fault))),
    };
    let chunks = all.chunks(TOGETHER).zip(looks);
    let finished = chunks.flat_map(|(chunk, look)| {
        let shown: Vec<Result<Shown>> = match look {
            Ok((_, shown)) => shown.into_iter().map(Ok).collect(),
            Err(fault) => chunk.iter().map(|_| Err(to_error(fault.clone()))).collect(),
        };
        chunk.iter().zip(shown)
    });
    join_all(finished.map(|(held, shown)| async move {
        let answer = match shown {
            Ok(shown) => finish(client, session, held, shown, sent).await,
            Err(error) => Err(error),
        };
        (held.at, answer)
    }))
    .await
}

async fn beat(client: &Arc<Client>, session: &Arc<Session>, all: &[Held<'_>]) -> Result<Beat, Fault> {
    let confirmed = session.confirmed();
    let shortest = all.iter().map(|held| held.holding.grant.lease).min().unwrap_or(Duration::ZERO);
    let fresh = (session.ttl / FRESH_PART).min(shortest / SHORTEST_FRESH_PART);
    // Not one that is older than the grant: a renewal prolongs.
    let is_newer = all.iter().all(|held| confirmed > held.holding.grant.sent);
    if is_newer && client.environment.now().since(confirmed) < fresh && !session.is_over() {
        return Ok(Beat::Fresh(confirmed));
    }
    // One that is under way was sent after each that was confirmed before. Where a caller did not wait for it and sent its own, a grant may count from
    // that one: then this renewal prolongs nothing, and shortens nothing.
    session.keep_alive(client).await.map(Beat::Sent)
}

async fn confirm(
    client: &Arc<Client>,
    session: &Arc<Session>,
    beat: Beat,
    header: &Header,
) -> Result<Moment, Fault> {
    match beat {
        Beat::Fresh(sent) => Ok(sent),
        Beat::Sent(beat) if session.confirm(&beat, header)? => Ok(beat.sent),
        // Another leader has taken over in between.
        Beat::Sent(..) => session.beat(client).await,
    }
}

async fn look(client: &Client, session: &Session, chunk: &[Held<'_>]) -> Result<(Header, Vec<Shown>), Fault> {
    let steps = chunk.iter().flat_map(|held| renewal_steps(client, &held.holding.grant.key, &held.own));
    let transaction = Transaction { then: steps.collect(), ..Transaction::default() };
    let mut outcome = session.transact(client, "renew", transaction).await?;
    let shown = (0..chunk.len()).map(|at| Shown {
        own: outcome.seen(2 * at).entries.into_iter().next(),
        behind: outcome.seen(2 * at + 1),
    });
    let shown = shown.collect();
    Ok((outcome.header, shown))
}

/// Says what the renewal of one grant has come to, and makes the store show what its holding says.
async fn finish(
    client: &Arc<Client>,
    session: &Arc<Session>,
    held: &Held<'_>,
    shown: Shown,
    sent: Moment,
) -> Result<Renewal> {
    let (grant, id) = (&held.holding.grant, held.holding.grant.id);
    if held.until <= client.environment.now() {
        return Ok(Renewal::Lost(LossReason::Lapsed));
    }
    let Some(own) = shown.own.filter(|own| own.made == held.own.place) else { return Ok(GONE) };
    if Content::read(&own.value)?.revoked {
        return Ok(Renewal::Lost(LossReason::Revoked));
    }
    if held.own.mode != grant.mode
        && grant.mode == Mode::Read
        && let Some(reason) = downgrade(client, session, held, own).await?
    {
        return Ok(Renewal::Lost(reason));
    }
    announce::show(client, session, held.holding).await;
    let mode = grant.mode;
    let queue = Queue { before: Vec::new(), behind: contenders(&shown.behind)? };
    let next = held.holding.next.as_ref().map(|next| next.id);
    let contended = is_contended(&queue, &Contender { mode, ..held.own.clone() }, next);
    let still = client.claims.with(id, held.number, |claim| {
        claim.shown = sent.max(claim.shown);
        claim.contended = contended;
        claim.is_wanted()
    });
    Ok(if still == Some(true) { Renewal::Renewed { sent, contended } } else { GONE })
}

/// Shows a reader where a writer was, at the same key and place: no contender that waits behind gets in between, unless it is a reader. Returns why
/// the lock is lost, if it is.
///
/// The value is replaced only if it is what was read of it: if another client has written to it, it is read again. So a revocation either is found,
/// or comes later and reads the new value.
async fn downgrade(
    client: &Client,
    session: &Session,
    held: &Held<'_>,
    mut own: Entry,
) -> Result<Option<LossReason>> {
    for _ in 0..ATTEMPTS {
        let content = Content::read(&own.value)?;
        if content.revoked {
            return Ok(Some(LossReason::Revoked));
        }
        let value = Content { mode: Mode::Read, ..content }.write();
        let transaction = Transaction {
            when: vec![Condition::ChangedAt(own.key.clone(), own.changed)],
            then: vec![Step::Put(Put { key: own.key.clone(), value, lease: None })],
            otherwise: vec![Step::Look(Look::at(Keys::one(own.key.clone())))],
        };
        let mut outcome = session.transact(client, "downgrade", transaction).await.map_err(to_error)?;
        if outcome.held {
            client.claims.with(held.holding.grant.id, held.number, |claim| claim.content.mode = Mode::Read);
            return Ok(None);
        }
        match outcome.seen(0).entries.into_iter().next().filter(|found| found.made == held.own.place) {
            Some(found) => own = found,
            None => return Ok(Some(LossReason::Gone)),
        }
    }
    Err(Error::new(ErrorKind::Unavailable, "other clients kept changing the lock"))
}
