//! One acquisition, from the user's call down through the layers to the keeper.

use std::future::Future;
use std::time::Duration;

use crate::environment::Moment;
use crate::error::{Error, ErrorKind, Result};
use crate::guard::{Guard, Unlocked, lost};
use crate::keeper::Ask;
use crate::key::Key;
use crate::layer::{Acquisition, Layers, Outcome};
use crate::lease::Lease;
use crate::locks::Locks;
use crate::mode::{Mode, Wait};
use crate::owner::Owner;

/// Acquires, waiting at most as long as the options say.
pub(crate) async fn acquire_or_time_out(locks: &Locks, key: Result<Key>, mode: Mode) -> Result<Guard> {
    let wait = locks.options.wait();
    acquire(locks, key.clone(), mode, wait).await?.ok_or_else(|| {
        let message = format!("the {mode} lock was not granted within the wait of the options, {wait:?}");
        let error = Error::new(ErrorKind::TimedOut, message);
        if let Ok(key) = &key { error.with_key(key) } else { error }
    })
}

/// Acquires, or answers `None` when the wait is over.
pub(crate) async fn acquire(
    locks: &Locks,
    key: Result<Key>,
    mode: Mode,
    wait: Wait,
) -> Result<Option<Guard>> {
    let key = key?;
    let owner = locks.owner.or_else(Owner::current);
    let ask = Ask { key, mode, owner, wait, options: &locks.options };
    if locks.client.layers.is_empty() {
        Ok(locks.client.keeper.acquire(ask).await?.map(Guard::new))
    } else {
        acquire_watched(locks, ask).await
    }
}

/// An owner of its own for an acquisition of nobody in particular.
fn new_owner(locks: &Locks) -> Owner {
    Owner::drawn_from(&**locks.client.keeper.environment())
}

/// The same, with layers that watch.
async fn acquire_watched(locks: &Locks, mut ask: Ask<'_>) -> Result<Option<Guard>> {
    let owner = *ask.owner.get_or_insert_with(|| new_owner(locks));
    let acquisition = Acquisition::new(ask.key.clone(), ask.mode, owner, ask.wait);
    locks.client.layers.acquiring(&acquisition)?;
    let mut waiting =
        Waiting { locks, since: locks.client.keeper.environment().now(), acquisition: Some(acquisition) };
    let result = locks.client.keeper.acquire(ask).await;
    let outcome = match &result {
        Ok(Some(acquired)) => Outcome::Granted { reentrant: acquired.reentrant },
        Ok(None) => Outcome::NotFree,
        Err(error) => Outcome::Failed(error),
    };
    let acquisition = waiting.end(&outcome);
    let since = locks.client.keeper.environment().now();
    Ok(result?.map(|acquired| {
        let guard = Guard::new(acquired);
        match acquisition {
            Some(acquisition) => guard.watched(locks.client.layers.clone(), acquisition, since),
            None => guard,
        }
    }))
}

/// Owes the layers an outcome; a caller that stops waiting drops it.
struct Waiting<'a> {
    locks: &'a Locks,
    since: Moment,
    acquisition: Option<Acquisition>,
}

impl Waiting<'_> {
    fn end(&mut self, outcome: &Outcome<'_>) -> Option<Acquisition> {
        let acquisition = self.acquisition.take()?;
        let waited: Duration = self.locks.client.keeper.environment().now().since(self.since);
        let layers: &Layers = &self.locks.client.layers;
        layers.acquired(&acquisition, outcome, waited);
        Some(acquisition)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.end(&Outcome::Cancelled);
    }
}

/// Does `work` under the lock, and stops it if the lock is lost.
pub(crate) async fn run<W, F>(locks: &Locks, key: Result<Key>, mode: Mode, work: W) -> Result<F::Output>
where
    W: FnOnce(Lease) -> F,
    F: Future,
{
    let owner = locks.owner.or_else(Owner::current).unwrap_or_else(|| new_owner(locks));
    let guard = acquire_or_time_out(&locks.owned_by(&owner), key, mode).await?;
    let output = tokio::select! {
        // The loss is looked at first: work that is ready in the same moment must not run on.
        biased;
        _ = guard.lost() => return Err(lost(&guard)),
        output = owner.scope(work(guard.lease())) => output,
    };
    guard.check()?;
    match guard.unlock().await {
        Ok(Unlocked::Released) => {}
        Ok(Unlocked::WasLost) => {
            tracing::warn!("the lock was lost in the moment in which the work under it ended")
        }
        Err(error) => tracing::warn!(%error, "the work is done, but giving its lock back was not confirmed"),
    }
    Ok(output)
}
