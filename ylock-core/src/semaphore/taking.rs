//! The way to a permit: say how many there are, be the first that waits, take whichever permit becomes free.
//!
//! Each permit is a lock, so there are never more holders than permits, on any engine, whatever else goes wrong: a turnstile that is lost costs
//! the order of waiters, and never a permit too many.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;

use super::keys::{Keys, permits_of};
use super::permit::Permit;
use crate::environment::Moment;
use crate::error::{Error, ErrorKind, Result};
use crate::guard::Guard;
use crate::keeper::{AcquireArgs, Acquired, Admission, Site};
use crate::key::Key;
use crate::mode::{Mode, Wait};
use crate::owner::Owner;
use crate::terms::Terms;

/// How long the first waiter waits in the queues of two permits before it joins more.
const FIRST_PAUSE: Duration = Duration::from_millis(1);

/// One acquisition of a permit.
pub(super) struct Taking<'a> {
    pub(super) terms: &'a Terms,
    pub(super) keys: &'a Keys,
    pub(super) patience: Patience,
    pub(super) at: Site,
}

/// How long to wait.
#[derive(Clone, Copy, Debug)]
pub(super) enum Patience {
    Tries,
    Forever,
    Until(Moment),
}

/// A permit that was taken, before its guard is made.
pub(super) struct Taken {
    pub(super) permit: Acquired,
    pub(super) name: Guard,
    pub(super) number: u32,
    pub(super) waited: bool,
}

impl Patience {
    pub(super) fn of(terms: &Terms, wait: Wait) -> Self {
        match wait {
            Wait::Forever => Self::Forever,
            Wait::For(time) if !time.is_zero() => {
                Self::Until(terms.handle.keeper.environment().now().plus(time))
            }
            Wait::For(_) | Wait::No => Self::Tries,
        }
    }
}

impl Taken {
    pub(super) fn into_permit(self, watch: impl FnOnce(Guard) -> Guard) -> Permit {
        Permit::new(watch(Guard::new(self.permit)), self.name, self.number)
    }
}

impl Taking<'_> {
    /// Takes a permit. `None` if none was free, or not in time.
    pub(super) async fn take(&self) -> Result<Option<Taken>> {
        loop {
            let Some(name) = self.name().await? else { return Ok(None) };
            let name = Guard::new(name);
            let taken = tokio::select! {
                biased;
                // None has seen the permit yet, so nothing is lost but time.
                _ = name.lost() => continue,
                taken = self.checked_permit() => taken?,
            };
            let Some((place, permit, waited)) = taken else { return Ok(None) };
            let number = u32::try_from(place + 1).unwrap_or(u32::MAX);
            return Ok(Some(Taken { permit, name, number, waited }));
        }
    }

    /// Reads the name, as every client does that has a permit or waits for one.
    async fn name(&self) -> Result<Option<Acquired>> {
        let (key, owner) = (&self.keys.name, self.keys.owner());
        if let Some(read) = self.or_wait(self.ask(key, Mode::Read, owner, Wait::No).await)? {
            return Ok(Some(read));
        }
        self.is_used_alike().await?;
        // No other use is there any more, or the store is silent.
        self.ask(key, Mode::Read, owner, self.wait()).await
    }

    /// Takes one of the permits, and looks meanwhile how others use the name. Only when this client reads it: each that reads it later sees this one,
    /// so of two that count differently at least one notices.
    async fn checked_permit(&self) -> Result<Option<(usize, Acquired, bool)>> {
        let (is_checked, permit) = tokio::try_join!(self.is_used_alike(), self.permit())?;
        if !is_checked {
            self.check().await?;
        }
        Ok(permit)
    }

    /// Fails as [`check`](Self::check) does. Returns false if that is not known yet, because the store is silent, which a wait bears for a while.
    async fn is_used_alike(&self) -> Result<bool> {
        self.or_wait(self.check().await.map(|()| Some(()))).map(|known| known.is_some())
    }

    /// Returns nothing instead of the error that the store did not answer, where the caller waits.
    fn or_wait<T>(&self, answer: Result<Option<T>>) -> Result<Option<T>> {
        match answer {
            Err(error) if error.kind().is_silence() && !self.tries() => Ok(None),
            answer => answer,
        }
    }

    /// Fails if another client uses the name as a lock, or counts on another number of permits.
    async fn check(&self) -> Result<()> {
        let seen = self.terms.handle.keeper.inspect(&self.keys.name).await?;
        let owners = seen.holders.iter().map(|holder| (holder.owner, &holder.client));
        let owners = owners.chain(seen.queue.iter().map(|waiter| (waiter.owner, &waiter.client)));
        for (owner, client) in owners {
            let used = match permits_of(owner) {
                Some(count) if count == self.keys.count() => continue,
                Some(count) => format!("as a semaphore of {count} permits, and not of {}", self.keys.count()),
                None => "as a lock, and not as a semaphore".to_owned(),
            };
            let message = format!("the client {client} uses this name {used}: give one of them another name");
            return Err(Error::new(ErrorKind::Invalid, message).with_key(&self.keys.name));
        }
        Ok(())
    }

    /// Takes one of the permits, and says which, and whether others went first.
    async fn permit(&self) -> Result<Option<(usize, Acquired, bool)>> {
        if self.tries() {
            let tried = self.try_permits().await?;
            return Ok(tried.map(|(place, permit)| (place, permit, false)));
        }
        let turnstile = self.ask(&self.keys.turnstile, Mode::Write, self.new_owner(), self.wait()).await?;
        let Some(turnstile) = turnstile else { return Ok(None) };
        let has_waited = waited(&turnstile);
        // Held until the permit is there: the next one takes its place at the permits only then.
        let turnstile = Guard::new(turnstile);
        // If others were here first, probably no permit is free.
        let tried = if has_waited { None } else { self.or_wait(self.try_permits().await)? };
        let taken = match tried {
            Some((place, permit)) => Some((place, permit, has_waited)),
            None => self.wait_for_permits().await?.map(|(place, permit)| (place, permit, true)),
        };
        drop(turnstile);
        Ok(taken)
    }

    /// Tries permits, from one on that is drawn, and twice as many each time: most often one of the first is free.
    async fn try_permits(&self) -> Result<Option<(usize, Acquired)>> {
        let (all, environment) = (self.keys.permits.len(), self.terms.handle.keeper.environment());
        let first = environment.random() as usize % all;
        let (mut tried, mut next) = (0, 1);
        while tried < all {
            let places = (tried..all.min(tried + next)).map(|place| (first + place) % all);
            let answers = places.map(|place| self.ask_for(place, Wait::No));
            if let Some(taken) = first_granted(join_all(answers).await)? {
                return Ok(Some(taken));
            }
            (tried, next) = (tried + next, next * 2);
        }
        Ok(None)
    }

    /// Waits in the queues of permits: of two at first, and of twice as many each time that a while has passed, until it is in all. A place in a queue
    /// costs two requests, so there should be no more of them than the wait is worth. Only the holder of the turnstile does this, so each of
    /// these queues is as short as can be.
    async fn wait_for_permits(&self) -> Result<Option<(usize, Acquired)>> {
        let (all, environment) = (self.keys.permits.len(), self.terms.handle.keeper.environment());
        let first = environment.random() as usize % all;
        let (mut waits, mut joined, mut pause) = (FuturesUnordered::new(), 0, FIRST_PAUSE);
        loop {
            let next = all.min((joined * 2).max(2));
            waits.extend((joined..next).map(|place| self.ask_for((first + place) % all, self.wait())));
            joined = next;
            let answer = tokio::select! {
                biased;
                answer = waits.next() => answer,
                () = environment.sleep(pause), if joined < all => {
                    pause *= 2;
                    continue;
                }
            };
            match answer {
                Some(answer) => {
                    if let Some(taken) = answer? {
                        return Ok(Some(taken));
                    }
                }
                // Of all that it has joined none was granted in time.
                None => return Ok(None),
            }
        }
    }

    async fn ask_for(&self, place: usize, wait: Wait) -> Result<Option<(usize, Acquired)>> {
        // An owner of its own: one that holds a permit already would get the same once more.
        let granted = self.ask(&self.keys.permits[place], Mode::Write, self.new_owner(), wait).await?;
        Ok(granted.map(|permit| (place, permit)))
    }

    async fn ask(&self, key: &Key, mode: Mode, owner: Owner, wait: Wait) -> Result<Option<Acquired>> {
        let args = AcquireArgs {
            key: key.clone(),
            mode,
            owner: Some(owner),
            wait,
            answer_within: matches!(self.patience, Patience::Until(_)).then(|| self.left()),
            options: &self.terms.handle.options,
            before: None,
            at: self.at,
        };
        self.terms.handle.keeper.acquire(args).await
    }

    fn new_owner(&self) -> Owner {
        Owner::drawn_from(&**self.terms.handle.keeper.environment())
    }

    fn tries(&self) -> bool {
        matches!(self.patience, Patience::Tries)
    }

    fn wait(&self) -> Wait {
        match self.patience {
            Patience::Forever => Wait::Forever,
            Patience::Until(_) => Wait::For(self.left()),
            Patience::Tries => Wait::No,
        }
    }

    /// Returns what is left of the time.
    fn left(&self) -> Duration {
        match self.patience {
            Patience::Until(end) => end.since(self.terms.handle.keeper.environment().now()),
            Patience::Forever | Patience::Tries => Duration::MAX,
        }
    }
}

fn waited(acquired: &Acquired) -> bool {
    matches!(acquired.admission, Admission::New { waited: true })
}

/// Returns the first that was granted; the others are given back. An error counts only if none was.
fn first_granted<T>(answers: Vec<Result<Option<T>>>) -> Result<Option<T>> {
    let mut failed = Ok(None);
    for answer in answers {
        match answer {
            Ok(Some(granted)) => return Ok(Some(granted)),
            Ok(None) => {}
            Err(error) => failed = Err(error),
        }
    }
    failed
}
