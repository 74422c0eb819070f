//! Inspection, which reads holders and waiters from the keys of a lock; and revocation.

use ylock_core::engine::{AcquisitionId, Holder, Inspection, Waiter};
use ylock_core::queue::places::holds;
use ylock_core::{Error, ErrorKind, Key, Result, StoreToken};

use super::contender::{Contender, Content};
use super::floor;
use super::link::Link;
use super::store::{Condition, Entry, Header, Keys, Look, Put, Step, Transaction, to_error};

/// The number of times that a change of the content is tried if it meets another change.
const ATTEMPTS: u32 = 8;

/// A contender with its key as it is stored.
type Shown = (Contender, Entry);

pub(crate) async fn inspect(link: &Link, key: &Key) -> Result<Inspection> {
    let (header, shown) = shown(link, key).await?;
    let all: Vec<_> = shown.iter().map(|(contender, _)| contender.clone()).collect();
    let mut inspection = Inspection::default();
    if shown.is_empty() {
        return Ok(inspection);
    }
    let floor = floor::agree(link, header.cluster, 0).await.map_err(to_error)?;
    for (contender, entry) in &shown {
        let content = Content::read(&entry.value)?;
        // Since the contender came, also for a holder: to write down when it got in would be one more request.
        let since = content.since();
        let waiter = Waiter::new(contender.id, content.owner, content.client, contender.mode, since);
        if holds(&all, contender) {
            let token = token_of(contender, floor).map(Into::into);
            inspection.holders.push(Holder::of(waiter, token));
        } else {
            inspection.queue.push(waiter);
        }
    }
    Ok(inspection)
}

/// Marks a grant as revoked, so that its holder finds out. The grant's key stays until the holder has heard of it and gives it back: before that no
/// contender that conflicts may get in.
pub(crate) async fn revoke(link: &Link, key: &Key, id: AcquisitionId) -> Result<bool> {
    for _ in 0..ATTEMPTS {
        let (_, shown) = shown(link, key).await?;
        let all: Vec<_> = shown.iter().map(|(contender, _)| contender.clone()).collect();
        let holder = shown.iter().find(|(contender, _)| contender.id == id && holds(&all, contender));
        let Some((_, entry)) = holder else { return Ok(false) };
        let value = Content { revoked: true, ..Content::read(&entry.value)? }.write();
        let transaction = Transaction {
            when: vec![Condition::ChangedAt(entry.key.clone(), entry.changed)],
            then: vec![Step::Put(Put { key: entry.key.clone(), value, lease: None })],
            otherwise: vec![],
        };
        if link.transact("revoke", transaction).await.map_err(to_error)?.held {
            return Ok(true);
        }
    }
    Err(Error::new(ErrorKind::Unavailable, "other clients kept changing the lock"))
}

/// Returns the token of a contender above this floor.
pub(super) fn token_of(contender: &Contender, floor: u64) -> Option<StoreToken> {
    StoreToken::new(floor.checked_add(u64::try_from(contender.place).ok()?)?)
}

/// Returns all contenders, in the order of their places.
pub(super) async fn shown(link: &Link, key: &Key) -> Result<(Header, Vec<Shown>)> {
    let look = Look::at(Keys::below(link.names.lock(key)));
    let mut outcome = link.transact("inspect", Transaction::looking([look])).await.map_err(to_error)?;
    let entries = outcome.seen(0).entries.into_iter();
    let shown = entries.map(|entry| Ok((Contender::read(&entry)?, entry))).collect::<Result<Vec<_>>>();
    let mut shown = shown?;
    shown.sort_by_key(|(contender, _)| contender.place);
    Ok((outcome.header, shown))
}
