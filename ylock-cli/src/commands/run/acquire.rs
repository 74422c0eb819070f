//! What the command is to hold: a lock, a reader's part of one, or a permit.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use ylock::{Acquirable, Acquire, Error, ErrorKind, Guard, LossReason, Permit, Token, Unlocked, Ylock};

use super::left::Left;
use crate::arguments::RunArguments;
use crate::exit::{Failed, NOT_FREE, Result, UNAVAILABLE};
use crate::output::say_again;
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

    /// Returns what of it stays if this process ends now.
    pub(super) fn left(&self) -> Left {
        match self {
            Self::Lock(_) => Left::Lock,
            Self::Permit(_) => Left::Permit,
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

/// When the wait is over; never if it is for ever.
#[derive(Clone, Copy)]
pub(super) struct Deadline(Option<Instant>);

impl Deadline {
    pub(super) fn after(wait: Option<Duration>) -> Self {
        // One that no clock reaches is none.
        Self(wait.and_then(|wait| Instant::now().checked_add(wait)))
    }

    /// Returns how long there is still to wait; nothing if it is for ever.
    pub(super) fn left(self) -> Option<Duration> {
        self.0.map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }

    /// Waits before the store is asked again which has not answered. Fails if there is no time for that, or another error is the reason.
    pub(super) async fn pause(self, arguments: &RunArguments, error: Error) -> Result<()> {
        let is_over = self.left().is_some_and(|left| left <= AGAIN);
        if arguments.no_wait || is_over || !is_silence(&error) {
            return Err(error.into());
        }
        say_again(&format!("{error:#}"));
        sleep(AGAIN).await;
        Ok(())
    }
}

/// Connects.
pub(super) async fn connect(store: &Store, arguments: &RunArguments, deadline: Deadline) -> Result<Ylock> {
    if arguments.no_wait {
        return store.connect().await;
    }
    let connecting = store.connect_when_there();
    match deadline.left() {
        None => connecting.await,
        Some(left) => timeout(left, connecting)
            .await
            .unwrap_or_else(|_| Err(Failed::new(UNAVAILABLE, "the store could not be reached in time"))),
    }
}

/// Waits for the lock as long as it may. What the store has not answered is asked again.
pub(super) async fn wait_for(ylock: &Ylock, arguments: &RunArguments, deadline: Deadline) -> Result<Held> {
    loop {
        match once(ylock, arguments, deadline.left()).await {
            Ok(Some(held)) => return Ok(held),
            Ok(None) => return Err(not_free(arguments)),
            Err(error) => deadline.pause(arguments, error).await?,
        }
    }
}

pub(super) fn not_free(arguments: &RunArguments) -> Failed {
    Failed::new(NOT_FREE, format!("{} is not free", arguments.lock))
}

fn is_silence(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Indeterminate | ErrorKind::Unavailable)
}

/// Acquires, waiting for as long as `left`; for ever without it.
async fn once(
    ylock: &Ylock,
    arguments: &RunArguments,
    left: Option<Duration>,
) -> ylock::Result<Option<Held>> {
    let key = &arguments.lock.key;
    let (locks, name) = (ylock.locks(key.group()), key.name());
    if let Some(permits) = arguments.permits {
        let permit = bounded(locks.semaphore(name, permits).acquire(), arguments, left).await?;
        return Ok(permit.map(Held::Permit));
    }
    let acquiring = if arguments.read { locks.read(name) } else { locks.write(name) };
    Ok(bounded(acquiring, arguments, left).await?.map(Held::Lock))
}

async fn bounded<G: Acquirable>(
    acquiring: Acquire<G>,
    arguments: &RunArguments,
    left: Option<Duration>,
) -> ylock::Result<Option<G>> {
    match left {
        _ if arguments.no_wait => acquiring.now().await,
        Some(left) => acquiring.within(left).await,
        None => acquiring.await.map(Some),
    }
}
