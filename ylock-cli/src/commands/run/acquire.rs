//! What the command is to hold: a lock, a reader's part of one, or a permit.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};
use ylock::{Error, Guard, LossReason, Permit, Token, Unlocked, Ylock};

use crate::arguments::RunArguments;
use crate::exit::{Failed, NOT_FREE, Result, UNAVAILABLE};
use crate::store::Store;

/// The pause before a store that has not answered is asked again.
const AGAIN: Duration = Duration::from_secs(1);

/// What is held while the command runs.
pub(super) enum Held {
    Lock(Guard),
    Permit(Permit),
}

impl Held {
    pub(super) fn token(&self) -> Option<Token> {
        match self {
            Self::Lock(guard) => guard.token(),
            Self::Permit(permit) => permit.token(),
        }
    }

    pub(super) async fn lost(&self) -> LossReason {
        match self {
            Self::Lock(guard) => guard.lost().await,
            Self::Permit(permit) => permit.lost().await,
        }
    }

    pub(super) async fn unlock(self) -> ylock::Result<Unlocked> {
        match self {
            Self::Lock(guard) => guard.unlock().await,
            Self::Permit(permit) => permit.unlock().await,
        }
    }
}

/// Connects, and acquires what is wanted; nothing with `--once-per`, which acquires by itself.
pub(super) async fn acquire(store: &Store, arguments: &RunArguments) -> Result<(Ylock, Option<Held>)> {
    let deadline = arguments.wait.map(|wait| Instant::now() + wait);
    let ylock = connect(store, arguments, deadline).await?;
    if arguments.once_per.is_some() {
        return Ok((ylock, None));
    }
    match wait_for(&ylock, arguments, deadline).await {
        Ok(held) => Ok((ylock, Some(held))),
        Err(failed) => {
            super::close(&ylock).await;
            Err(failed)
        }
    }
}

async fn connect(store: &Store, arguments: &RunArguments, deadline: Option<Instant>) -> Result<Ylock> {
    if arguments.no_wait {
        return store.connect().await;
    }
    let connecting = store.connect_when_there();
    match deadline {
        None => connecting.await,
        Some(deadline) => timeout_at(deadline, connecting)
            .await
            .unwrap_or_else(|_| Err(Failed::new(UNAVAILABLE, "the store could not be reached in time"))),
    }
}

/// Waits for the lock as long as it may. What the store has not answered is asked again.
async fn wait_for(ylock: &Ylock, arguments: &RunArguments, deadline: Option<Instant>) -> Result<Held> {
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let error = match once(ylock, arguments, left).await {
            Ok(Some(held)) => return Ok(held),
            Ok(None) => return Err(Failed::new(NOT_FREE, format!("{} is not free", arguments.lock.0))),
            Err(error) => error,
        };
        let is_over = deadline.is_some_and(|deadline| Instant::now() + AGAIN >= deadline);
        if arguments.no_wait || is_over || !error.is_retryable() || !is_silence(&error) {
            return Err(error.into());
        }
        eprintln!("ylock: {error:#}; trying again");
        sleep(AGAIN).await;
    }
}

fn is_silence(error: &Error) -> bool {
    use ylock::ErrorKind::{Indeterminate, Unavailable};
    matches!(error.kind(), Indeterminate | Unavailable)
}

/// Acquires, waiting for as long as `left`; for ever without it.
async fn once(
    ylock: &Ylock,
    arguments: &RunArguments,
    left: Option<Duration>,
) -> ylock::Result<Option<Held>> {
    let key = &arguments.lock.0;
    let (locks, name) = (ylock.locks(key.group()), key.name());
    if let Some(permits) = arguments.permits {
        let semaphore = locks.semaphore(name, permits);
        let permit = match (arguments.no_wait, left) {
            (true, _) => semaphore.try_acquire().await?,
            (false, Some(left)) => semaphore.acquire_within(left).await?,
            (false, None) => Some(semaphore.acquire().await?),
        };
        return Ok(permit.map(Held::Permit));
    }
    let guard = match (arguments.read, arguments.no_wait, left) {
        (false, true, _) => locks.try_write(name).await?,
        (false, false, Some(left)) => locks.write_within(name, left).await?,
        (false, false, None) => Some(locks.write(name).await?),
        (true, true, _) => locks.try_read(name).await?,
        (true, false, Some(left)) => locks.read_within(name, left).await?,
        (true, false, None) => Some(locks.read(name).await?),
    };
    Ok(guard.map(Held::Lock))
}
