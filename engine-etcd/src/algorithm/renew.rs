//! Renewal: the keys of grants go to a younger etcd lease, which all that are due have in common.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use ylock_core::engine::{Holding, LossReason, Renewal, valid_until};
use ylock_core::environment::Moment;
use ylock_core::{Error, ErrorKind, Mode, Result};

use super::client::Client;
use super::contender::{Contender, Content};
use super::judge::{Queue, is_contended};
use super::kept::Kept;
use super::look::{contenders, renewal_steps};
use super::session::Session;
use super::store::{Condition, Entry, Fault, Keys, Look, Put, Seen, Step, Transaction, to_error};
use super::{announce, moves};

/// The number of grants that are renewed in one transaction: servers take 128 steps in one.
const TOGETHER: usize = 32;
/// The part of a lease that the etcd lease may be old to which grants go: locks that were taken one after the other are due one after the other, and each
/// would want an etcd lease of its own.
const FRESH_PART: u32 = 20;
/// The number of times that a change of a key is tried if it meets another change.
const ATTEMPTS: u32 = 8;

const GONE: Renewal = Renewal::Lost(LossReason::Gone);

/// A grant that is to be renewed.
struct Held<'a> {
    at: usize,
    holding: &'a Holding,
    kept: Kept,
    own: Contender,
    /// The end of the time for which the last renewal may be relied on.
    until: Moment,
}

/// What a look has shown of a grant.
struct Shown {
    own: Option<Entry>,
    behind: Seen,
}

type Answers = Vec<(usize, Result<Renewal>)>;

/// Renews grants, and makes the store show what the holdings say.
pub(crate) async fn renew(client: &Arc<Client>, holdings: &[Holding]) -> Vec<Result<Renewal>> {
    let mut answers: Vec<Result<Renewal>> = holdings.iter().map(|_| Ok(GONE)).collect();
    let mut by_lease: Vec<(i64, Vec<Held<'_>>)> = Vec::new();
    for (at, holding) in holdings.iter().enumerate() {
        let Some(held) = held(client, at, holding) else { continue };
        let seconds = Session::seconds_for(holding.grant.lease);
        match by_lease.iter_mut().find(|(other, _)| *other == seconds) {
            Some((_, all)) => all.push(held),
            None => by_lease.push((seconds, vec![held])),
        }
    }
    let chunks = by_lease.iter().flat_map(|(_, all)| all.chunks(TOGETHER));
    for (at, answer) in join_all(chunks.map(|chunk| together(client, chunk))).await.into_iter().flatten() {
        answers[at] = answer;
    }
    answers
}

/// Returns what a renewal needs to know of a grant; `None` if the client does not have it any more.
fn held<'a>(client: &Client, at: usize, holding: &'a Holding) -> Option<Held<'a>> {
    let id = holding.grant.id;
    let known = client.claims.with_any(id, |claim| {
        let own = claim.contender(id).filter(|_| claim.is_wanted())?;
        Some((claim.number, own, valid_until(claim.shown, holding.grant.lease)))
    });
    let (number, own, until) = known.flatten()?;
    Some(Held { at, holding, kept: client.claims.kept(id, number)?, own, until })
}

/// Renews grants by one transaction. If any of their keys was changed by another client, each by one of its own.
async fn together(client: &Arc<Client>, all: &[Held<'_>]) -> Answers {
    let every = |answer: Result<Renewal>| all.iter().map(|held| (held.at, answer.clone())).collect();
    let mut session = match young(client, all).await {
        Ok(session) => session,
        Err(error) => return every(Err(error)),
    };
    let mut moved = move_all(client, &session, all).await;
    if matches!(moved, Err(Fault::LeaseGone)) {
        // The younger lease has ended, or was ended by hand. That says nothing of the keys.
        session = match young(client, all).await {
            Ok(session) => session,
            Err(error) => return every(Err(error)),
        };
        moved = move_all(client, &session, all).await;
    }
    let (held, shown) = match moved {
        Ok(moved) => moved,
        Err(fault) => return every(Err(to_error(fault))),
    };
    join_all(all.iter().zip(shown).map(|(one, shown)| async {
        let answer = match held {
            true => finish(client, &session, one, shown).await,
            false => alone(client, one, shown).await,
        };
        (one.at, answer)
    }))
    .await
}

/// Returns the session to which grants go. Its lease was made after those that they count from: a renewal prolongs.
async fn young(client: &Arc<Client>, all: &[Held<'_>]) -> Result<Arc<Session>> {
    let shortest = all.iter().map(|held| held.holding.grant.lease).min().unwrap_or(Duration::ZERO);
    let is_newer = |made: Moment| all.iter().all(|held| made > held.holding.grant.sent);
    let is_there = client.last_made(shortest).is_some_and(is_newer);
    client.session_for(shortest, if is_there { shortest / FRESH_PART } else { Duration::ZERO }).await
}

/// Puts keys under the lease of a session, if none was changed since this client has done so, and looks at them and at those behind. Returns whether they are
/// there.
async fn move_all(
    client: &Arc<Client>,
    session: &Arc<Session>,
    all: &[Held<'_>],
) -> Result<(bool, Vec<Shown>), Fault> {
    let moving: Vec<_> =
        all.iter().map(|held| &held.kept).filter(|kept| !Arc::ptr_eq(&kept.session, session)).collect();
    let _expected = session.expect(moving.len());
    let looks = || all.iter().flat_map(|held| renewal_steps(client, &held.holding.grant.key, &held.own));
    let transaction = Transaction {
        when: moving.iter().map(|kept| kept.is_unchanged()).collect(),
        then: moving.iter().map(|kept| Step::Put(kept.put_in(session))).chain(looks()).collect(),
        otherwise: if moving.is_empty() { Vec::new() } else { looks().collect() },
    };
    let mut outcome = session.transact(client, "renew", transaction).await?;
    let held = outcome.held;
    let first = if held { moving.len() } else { 0 };
    if held {
        for kept in moving {
            client.claims.moved(kept, session, outcome.header.revision);
        }
    }
    let shown = (0..all.len()).map(|at| Shown {
        own: outcome.seen(first + 2 * at).entries.into_iter().next(),
        behind: outcome.seen(first + 2 * at + 1),
    });
    Ok((held, shown.collect()))
}

/// Renews a grant whose key may have been changed: by a client that has revoked it, or by this one, whose answer was lost.
async fn alone(client: &Arc<Client>, held: &Held<'_>, shown: Shown) -> Result<Renewal> {
    let Some(own) = own_of(held, &shown) else { return Ok(GONE) };
    let content = Content::read(&own.value)?;
    if content.revoked {
        return Ok(Renewal::Lost(LossReason::Revoked));
    }
    let Some(kept) = client.claims.kept(held.kept.id, held.kept.number) else { return Ok(GONE) };
    let kept = Kept { changed: own.changed, content, ..kept };
    let lease = held.holding.grant.lease;
    match moves::go_on(client, kept, lease, lease / FRESH_PART).await? {
        Some(session) => finish(client, &session, held, shown).await,
        None => Ok(GONE),
    }
}

/// Returns what was seen of a grant's own key, and not of another contender's that has the key now.
fn own_of<'a>(held: &Held<'_>, shown: &'a Shown) -> Option<&'a Entry> {
    shown.own.as_ref().filter(|own| own.made == held.own.place)
}

/// Says what the renewal of one grant has come to, and makes the store show what its holding says.
async fn finish(
    client: &Arc<Client>,
    session: &Arc<Session>,
    held: &Held<'_>,
    shown: Shown,
) -> Result<Renewal> {
    let (grant, id, sent) = (&held.holding.grant, held.holding.grant.id, session.made());
    if held.until <= client.environment.now() {
        return Ok(Renewal::Lost(LossReason::Lapsed));
    }
    let Some(own) = own_of(held, &shown).cloned() else { return Ok(GONE) };
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
    let still = client.claims.with(id, held.kept.number, |claim| {
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
            client.claims.with(held.holding.grant.id, held.kept.number, |claim| {
                claim.content.mode = Mode::Read;
                claim.changed = outcome.header.revision.max(claim.changed);
            });
            return Ok(None);
        }
        match outcome.seen(0).entries.into_iter().next().filter(|found| found.made == held.own.place) {
            Some(found) => own = found,
            None => return Ok(Some(LossReason::Gone)),
        }
    }
    Err(Error::new(ErrorKind::Unavailable, "other clients kept changing the lock"))
}
