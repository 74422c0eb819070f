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

pub(crate) async fn inspect(session: &Session, key: &Key) -> Result<Inspection> {
    let place = Place::of(&session.base, key);
    let mut all = names(&session.list_now(&place).await.map_err(to_error)?)?;
    all.sort_by_key(|name| name.place);
    let contents = join_all(all.iter().map(|name| content(session, &place, name))).await;
    let mut inspection = Inspection::default();
    for (name, content) in all.iter().zip(contents) {
        // A contender that left in between is not there.
        let Some((content, token)) = content? else { continue };
        // Since the contender came, also for a holder: see the guarantees.
        let since = content.since();
        let shown = Waiter::new(name.tag.id, content.owner, content.client, name.tag.mode, since);
        if holds(&all, name) {
            let token = content.token.or(token).map(Into::into);
            inspection.holders.push(Holder::of(shown, token));
        } else {
            inspection.queue.push(shown);
        }
    }
    Ok(inspection)
}

/// Marks a grant as revoked, so that its holder finds out. The grant's node stays until the holder has heard of it and gives it back:
/// before that no contender that conflicts may get in.
pub(crate) async fn revoke(session: &Session, key: &Key, id: AcquisitionId) -> Result<bool> {
    let place = Place::of(&session.base, key);
    for _ in 0..ATTEMPTS {
        let all = names(&session.list_now(&place).await.map_err(to_error)?)?;
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

async fn content(
    session: &Session,
    place: &Place,
    name: &Name,
) -> Result<Option<(Content, Option<StoreToken>)>> {
    match session.read(&place.child(&name.to_string())).await {
        Ok(stored) => Ok(Some((Content::read(&stored.content)?, stored.token))),
        Err(Fault::NoNode) => Ok(None),
        Err(fault) => Err(to_error(fault)),
    }
}
