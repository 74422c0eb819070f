//! Inspection, which reads holders and waiters from the nodes of a lock; and revocation.

use futures_util::future::join_all;
use ylock_core::engine::{AcquisitionId, Holder, Inspection, Waiter};
use ylock_core::queue::places::holds;
use ylock_core::{Error, ErrorKind, Key, Result, StoreToken};

use super::create::names;
use super::node::{Content, Name};
use super::place::Place;
use super::session::Session;
use super::store::{Fault, to_error};

/// The number of times that a change of the content is tried if it meets another change.
const ATTEMPTS: u32 = 8;

/// The content of a contender's node, and the token that the store gave the node.
type Stored = (Content, Option<StoreToken>);

pub(crate) async fn inspect(session: &Session, key: &Key) -> Result<Inspection> {
    let place = Place::of(&session.base, key);
    let mut all = names(&session.list_now(&place).await.map_err(to_error)?)?;
    all.sort_by_key(|name| name.place);
    let contents = join_all(all.iter().map(|name| content(session, &place, name))).await;
    let mut inspection = Inspection::default();
    for (name, content) in all.iter().zip(contents) {
        // A contender that left in between is not there.
        let Some(content) = content? else { continue };
        if holds(&all, name) {
            inspection.holders.push(holder(name, content));
        } else {
            inspection.queue.push(waiter(name, content.0));
        }
    }
    Ok(inspection)
}

/// Returns whether no contender is there. Does not read what the contenders' nodes say.
pub(crate) async fn may_be_free(session: &Session, key: &Key) -> Result<bool> {
    let place = Place::of(&session.base, key);
    Ok(session.list_now(&place).await.map_err(to_error)?.is_empty())
}

/// Returns all holders, none that had left when this was called.
pub(crate) async fn exact_holders(session: &Session, key: &Key) -> Result<Vec<Holder>> {
    let place = Place::of(&session.base, key);
    let all = names(&session.list_after_all(&place).await.map_err(to_error)?)?;
    let holding = all.iter().filter(|name| holds(&all, name)).copied().collect();
    let (mut holders, gone) = holders_of(session, &place, holding).await?;
    if !gone.is_empty() {
        // A writer that has become a reader meanwhile, which it does once, has another node at its place. All others have left.
        let mut again = names(&session.list(&place).await.map_err(to_error)?)?;
        again.retain(|name| gone.iter().any(|gone| gone.place == name.place));
        holders.extend(holders_of(session, &place, again).await?.0);
    }
    Ok(holders)
}

/// Returns the holders with these names, and the names that are gone.
async fn holders_of(
    session: &Session,
    place: &Place,
    holding: Vec<Name>,
) -> Result<(Vec<Holder>, Vec<Name>)> {
    let contents = join_all(holding.iter().map(|name| content(session, place, name))).await;
    let (mut holders, mut gone) = (Vec::new(), Vec::new());
    for (name, content) in holding.into_iter().zip(contents) {
        match content? {
            Some(content) => holders.push(holder(&name, content)),
            None => gone.push(name),
        }
    }
    Ok((holders, gone))
}

fn holder(name: &Name, (content, token): Stored) -> Holder {
    let token = content.token.or(token).map(Into::into);
    Holder::of(waiter(name, content), token)
}

fn waiter(name: &Name, content: Content) -> Waiter {
    // Since the contender came, also for a holder: see the guarantees.
    let since = content.since();
    Waiter::new(name.tag.id, content.owner, content.client, name.tag.mode, since)
}

/// Marks a grant as revoked, so that its holder finds out. The grant's node stays until the holder has heard of it and gives it back:
/// before that no contender that conflicts may get in.
pub(crate) async fn revoke(session: &Session, key: &Key, id: AcquisitionId) -> Result<bool> {
    let place = Place::of(&session.base, key);
    for _ in 0..ATTEMPTS {
        // A `sync` may miss a grant that its holder was told of just before, and the operator would
        // read that it is not held.
        let all = names(&session.list_after_all(&place).await.map_err(to_error)?)?;
        let holder = all.iter().find(|name| name.tag.id == id && holds(&all, name));
        let Some(holder) = holder else { return Ok(false) };
        let path = place.child(&holder.to_string());
        let (content, version) = match session.read(&path).await {
            Ok(stored) => (Content::read(&stored.content)?, stored.version),
            Err(Fault::NoNode) => continue,
            Err(fault) => return Err(to_error(fault)),
        };
        let content = Content { revoked: true, ..content };
        match session.write_content(&path, &content.write(), version).await {
            Ok(()) => return Ok(true),
            Err(Fault::NoNode | Fault::BadVersion) => {}
            Err(fault) => return Err(to_error(fault)),
        }
    }
    Err(Error::new(ErrorKind::Unavailable, "other clients kept changing the lock"))
}

async fn content(session: &Session, place: &Place, name: &Name) -> Result<Option<Stored>> {
    match session.read(&place.child(&name.to_string())).await {
        Ok(stored) => Ok(Some((Content::read(&stored.content)?, stored.token))),
        Err(Fault::NoNode) => Ok(None),
        Err(fault) => Err(to_error(fault)),
    }
}
