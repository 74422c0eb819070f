//! A contender's key goes from one etcd lease of its client to a younger one, before the older one ends. It keeps its place.
//!
//! A key never goes to an older lease: who moves it reads first how the key was changed last, and chooses then the youngest lease that there is. The servers
//! move the key only if it was not changed since. So a request that comes late moves nothing, once another one was carried out.

use std::sync::Arc;
use std::time::Duration;

use ylock_core::engine::AcquisitionId;
use ylock_core::{Error, ErrorKind, Result};

use super::client::Client;
use super::kept::Kept;
use super::session::{Session, YOUNG_PART};
use super::store::{Fault, Keys, Look, Step, Transaction, to_error};

/// The number of times that a key is moved if each time another client has changed it in between.
const ATTEMPTS: u32 = 8;

/// Puts the key of a claim under a young lease, if it is not. Returns the session that it is in; `None` if the key has gone, or is not wanted any more.
pub(crate) async fn refresh(
    client: &Arc<Client>,
    id: AcquisitionId,
    number: u64,
    lease: Duration,
) -> Result<Option<Arc<Session>>> {
    match client.claims.kept(id, number) {
        Some(kept) => go_on(client, kept, lease, lease / YOUNG_PART).await,
        None => Ok(None),
    }
}

/// As [`refresh`], for a key that was seen, and a lease that is younger than `oldest`.
pub(super) async fn go_on(
    client: &Arc<Client>,
    mut kept: Kept,
    lease: Duration,
    oldest: Duration,
) -> Result<Option<Arc<Session>>> {
    for _ in 0..ATTEMPTS {
        let session = client.session_for(lease, oldest).await?;
        if Arc::ptr_eq(&session, &kept.session) {
            return Ok(Some(session));
        }
        let transaction = Transaction {
            when: vec![kept.is_unchanged()],
            then: vec![Step::Put(kept.put_in(&session))],
            otherwise: vec![Step::Look(Look::at(Keys::one(kept.stored_at.clone())))],
        };
        match session.transact(client, "refresh", transaction).await {
            Ok(outcome) if outcome.held => {
                let is_wanted = client.claims.moved(&kept, &session, outcome.header.revision);
                return Ok(is_wanted.then_some(session));
            }
            Ok(mut outcome) => match kept.seen(outcome.seen(0).entries.into_iter().next())? {
                Some(seen) => kept = seen,
                None => return Ok(None),
            },
            // That of the younger session, which is over.
            Err(Fault::LeaseGone) => {}
            Err(fault) => return Err(to_error(fault)),
        }
    }
    Err(Error::new(ErrorKind::Unavailable, "other clients kept changing the lock").with_engine(crate::NAME))
}
