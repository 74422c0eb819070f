//! Work under a lock: it is stopped if the lock is lost, and the lock is given back at its end.

use std::future::Future;

use super::Acquirable;
use crate::error::Result;
use crate::foreign::tell;
use crate::guard::Guard;
use crate::owner::Owner;
use crate::terms::Terms;
use crate::token::Token;
use crate::unlocked::Unlocked;

/// Runs `work` under what was acquired, and gives that back.
pub(super) async fn work_under<G, W, F>(terms: &Terms, acquired: G, work: W) -> Result<F::Output>
where
    G: Acquirable,
    W: FnOnce(G::Lease) -> F,
    F: Future,
{
    let output = stopped_if_lost(terms, &acquired, work).await?;
    acquired.give_back(terms).await;
    Ok(output)
}

/// Runs `work` as the owner of what was acquired. Drops it if that is lost, and fails if it was lost by the end of the work.
pub(crate) async fn stopped_if_lost<G, W, F>(terms: &Terms, acquired: &G, work: W) -> Result<F::Output>
where
    G: Acquirable,
    W: FnOnce(G::Lease) -> F,
    F: Future,
{
    // The call is inside the scope, too: what the work does before its first await belongs to the owner.
    let work = async { work(acquired.work_lease()).await };
    let output = tokio::select! {
        // The loss is looked at first: work that is ready in the same moment must not run on.
        biased;
        lost = acquired.until_lost() => return Err(lost),
        output = scoped(G::work_owner(terms), work) => output,
    };
    acquired.check_valid()?;
    Ok(output)
}

async fn scoped<F: Future>(owner: Option<Owner>, work: F) -> F::Output {
    match owner {
        Some(owner) => owner.scope(work).await,
        None => work.await,
    }
}

/// Gives back a lock whose work is done: what goes wrong now is no error of the work.
pub(crate) async fn give_back(terms: &Terms, guard: Guard) {
    let (engine, lease) = (terms.handle.keeper.engine().name(), guard.lease());
    let owner = lease.owner();
    match guard.unlock().await {
        Ok(Unlocked::Released) => {}
        Ok(Unlocked::WasLost) => tell!(
            warn, engine, key = ?lease.key(), %owner, token = lease.token().map(Token::get),
            "the lock was lost at the moment at which the work under it ended"
        ),
        Err(error) => tell!(
            warn, engine, key = ?lease.key(), %owner, token = lease.token().map(Token::get), error = format!("{error:#}"),
            "the work is done, but the release of its lock was not confirmed"
        ),
    }
}

/// Creates the owner of an acquisition for which the caller named none.
pub(super) fn new_owner(terms: &Terms) -> Owner {
    Owner::drawn_from(&**terms.handle.keeper.environment())
}

/// Returns the terms with an owner: the work may acquire the same lock again, so it needs one before the lock is acquired.
pub(crate) fn with_owner(terms: &Terms) -> Terms {
    terms.owned_by(&owner_of(terms))
}

/// Returns the owner for which something is acquired on these terms: the one that is named or current, or a new one.
pub(crate) fn owner_of(terms: &Terms) -> Owner {
    terms.owner.or_else(Owner::current).unwrap_or_else(|| new_owner(terms))
}

/// Returns the terms for an owner of its own, whichever one the caller is.
pub(crate) fn with_new_owner(terms: &Terms) -> Terms {
    terms.owned_by(&new_owner(terms))
}
