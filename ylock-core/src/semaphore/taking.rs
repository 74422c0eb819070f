//! The way to a permit: say how many there are, be the first that waits, take whichever permit becomes free.
//!
//! Each permit is a lock, so there are never more holders than permits, on any engine, whatever else goes wrong: a turnstile that is lost costs
//! the order of waiters, and never a permit too many.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use super::keys::Keys;
use super::permit::Permit;
use crate::client_name::ClientName;
use crate::deadline::Deadline;
use crate::engine::Inspection;
use crate::environment::Environment;
use crate::error::Result;
use crate::guard::Guard;
use crate::keeper::{AcquireArgs, Acquired, Admission, Hold, Site};
use crate::key::Key;
use crate::lease::Lease;
use crate::mode::{Mode, Wait};
use crate::owner::Owner;
use crate::permits::{permits_of, used_otherwise};
use crate::terms::Terms;

/// In the queues of how many permits of other clients the first waiter waits at first.
const FIRST_QUEUES: usize = 2;
/// How long it waits there before it joins more: this many times as long as the store last took to grant a permit that was free, and twice as long each
/// time. With a fixed pause the waiter would stand in all queues of a slow store before that has answered for the first ones.
const PATIENCE: u32 = 2;
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
/// No pause is longer: a grant may have taken very long because the process was suspended meanwhile, and permits become free in queues that the waiter
/// has not joined.
const LONGEST_PAUSE: Duration = Duration::from_millis(250);
/// The longest that a try waits for other calls of its client, which ask for the name as well.
const ALIKE: Duration = Duration::from_secs(1);
/// The pause between two looks at a store that is silent.
const AGAIN: Duration = Duration::from_millis(100);

/// One acquisition of a permit.
pub(super) struct Taking<'a> {
    pub(super) terms: &'a Terms,
    pub(super) keys: &'a Keys,
    pub(super) deadline: Deadline,
    pub(super) at: Site,
}

/// A permit that was taken, before its guard is made.
pub(super) struct Taken {
    pub(super) permit: Acquired,
    pub(super) name: Guard,
    pub(super) number: u32,
    pub(super) waited: bool,
}

impl Taken {
    pub(super) fn into_permit(self, watch: impl FnOnce(Guard) -> Guard) -> Permit {
        let permit = watch(Guard::new(self.permit)).watched_with(&self.name);
        Permit::new(permit, self.name, self.number)
    }
}

impl Taking<'_> {
    /// Takes a permit. `None` if none was free, or not in time.
    pub(super) async fn take(&self) -> Result<Option<Taken>> {
        loop {
            let Some(name) = self.name().await? else { return Ok(None) };
            let hold = Arc::clone(&name.hold);
            let name = Guard::new(name);
            let taken = tokio::select! {
                biased;
                // None has seen the permit yet, so nothing is lost but time.
                _ = name.lost() => continue,
                taken = self.checked_permit(&hold) => taken?,
            };
            let Some((place, permit, waited)) = taken else { return Ok(None) };
            // Once more a look: one of the two may have been lost beside the last answer, or while this call was not polled.
            if !name.is_valid() || !Lease::new(Arc::clone(&permit.hold), permit.mode).is_valid() {
                continue;
            }
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
        // No other use is there any more, or the store is silent; or the try met another call of this client, which asks for the same.
        let wait = if self.tries() { Wait::For(ALIKE) } else { self.wait() };
        self.ask(key, Mode::Read, owner, wait).await
    }

    /// Takes one of the permits, and looks meanwhile how others use the name. Only when this client reads it: each that reads it later sees this one,
    /// so of two that count differently at least one notices. For the same reason one look is enough for all calls that share the read: all that
    /// name this number, for as long as it is held without a gap.
    async fn checked_permit(&self, name: &Hold) -> Result<Option<(usize, Acquired, bool)>> {
        if name.is_used_alike() {
            return self.permit().await;
        }
        let (is_checked, permit) = tokio::try_join!(self.is_used_alike(), self.permit())?;
        if is_checked {
            name.note_alike();
        } else if permit.is_some() {
            self.check_soon().await?;
            name.note_alike();
        }
        Ok(permit)
    }

    /// Looks how others use the name until the store answers, for one lease, as every wait bears an outage.
    async fn check_soon(&self) -> Result<()> {
        let environment = self.environment();
        let (begun, lease) = (environment.now(), self.terms.options().lease());
        loop {
            match self.check().await {
                Err(error) if error.kind().is_silence() && environment.now().since(begun) < lease => {
                    environment.sleep(AGAIN).await;
                }
                checked => return checked,
            }
        }
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

    /// Fails if another client, or another call of this one, uses the name as a lock, or counts on another number of permits.
    ///
    /// The store shows one reader of each client, the one whose grant the later ones share. So a call may pass only if the reader that the store
    /// shows of its own client says the same number: that is the one by which other clients know it.
    async fn check(&self) -> Result<()> {
        let keeper = &self.terms.handle.keeper;
        let shown = keeper.inspect_as_others(&self.keys.name).await?;
        let here = keeper.with_details(&self.keys.name, shown.clone());
        for (owner, client) in users(&shown).chain(users(&here)) {
            let used = match permits_of(owner) {
                Some(count) if count == self.keys.count() => continue,
                Some(count) => format!("as a semaphore of {count} permits, and not of {}", self.keys.count()),
                None => "as a lock, and not as a semaphore".to_owned(),
            };
            return Err(used_otherwise(&self.keys.name, client, &used));
        }
        Ok(())
    }

    /// Takes one of the permits, and says which, and whether others went first.
    async fn permit(&self) -> Result<Option<(usize, Acquired, bool)>> {
        if self.tries() {
            let tried = self.try_permits().await?;
            return Ok(tried.map(|(place, permit)| (place, permit, false)));
        }
        // As fair as the locks of these options: an order over all tasks of all processes costs many requests for each turn on some stores.
        let turnstile = self.ask(&self.keys.turnstile, Mode::Write, self.new_owner(), self.wait());
        let Some(turnstile) = turnstile.await? else { return Ok(None) };
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

    /// Tries permits, from one on that is drawn, and twice as many each time: most often one of the first is free. An error counts only if none was.
    async fn try_permits(&self) -> Result<Option<(usize, Acquired)>> {
        let (all, environment) = (self.keys.permits(), self.environment());
        let first = environment.random() as usize % all;
        let (mut tried, mut next, mut none) = (0, 1, Ok(None));
        while tried < all {
            let places = (tried..all.min(tried + next)).map(|place| (first + place) % all);
            let mut asked: FuturesUnordered<_> = places.map(|place| self.ask_for(place, Wait::No)).collect();
            // The first answer that is a grant: the others are given back, and one that does not come is not waited for.
            while let Some(answer) = asked.next().await {
                match answer {
                    Ok(Some(taken)) => return Ok(Some(taken)),
                    Ok(None) => {}
                    Err(error) => none = Err(error),
                }
            }
            (tried, next) = (tried + next, next * 2);
        }
        none
    }

    /// Waits for the permits that this client has, which it hands over without the store; and in the queues of others: of two at first, and of twice
    /// as many each time that a while has passed, until it is in all. A place in a queue costs two requests, so there should be no more of them
    /// than the wait is worth. Only the holder of the turnstile does this, so each of these queues is as short as can be. An error counts only when
    /// no permit is waited for any more.
    async fn wait_for_permits(&self) -> Result<Option<(usize, Acquired)>> {
        let (all, environment) = (self.keys.permits(), self.environment());
        let (places, mut joins) = self.own_first()?;
        let (mut waits, mut joined) = (FuturesUnordered::new(), 0);
        let grant_time = self.terms.handle.keeper.grant_time().last();
        let mut pause = grant_time.saturating_mul(PATIENCE).clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
        let mut none = Ok(None);
        joins += FIRST_QUEUES;
        loop {
            let next = all.min(joins);
            waits.extend(places[joined..next].iter().map(|place| self.ask_for(*place, self.wait())));
            (joined, joins) = (next, next * 2);
            let answer = tokio::select! {
                biased;
                answer = waits.next() => answer,
                () = environment.sleep(pause), if joined < all => {
                    pause = (pause * 2).min(LONGEST_PAUSE);
                    continue;
                }
            };
            match answer {
                Some(Ok(Some(taken))) => return Ok(Some(taken)),
                Some(Ok(None)) => {}
                Some(Err(error)) => none = Err(error),
                // Of all that it has joined none was granted.
                None if joined == all => return none,
                None => {}
            }
        }
    }

    /// Returns the places of all permits, those first that this client has, and how many these are; both in an order that is drawn.
    fn own_first(&self) -> Result<(Vec<usize>, usize)> {
        let (all, keeper) = (self.keys.permits(), &self.terms.handle.keeper);
        let first = self.environment().random() as usize % all;
        let (mut own, mut others) = (Vec::new(), Vec::new());
        for place in (0..all).map(|place| (first + place) % all) {
            let is_own = keeper.holds(&self.keys.permit(place)?);
            if is_own { own.push(place) } else { others.push(place) }
        }
        let count = own.len();
        own.append(&mut others);
        Ok((own, count))
    }

    async fn ask_for(&self, place: usize, wait: Wait) -> Result<Option<(usize, Acquired)>> {
        // An owner of its own: one that holds a permit already would get the same once more.
        let (environment, keeper) = (self.environment(), &self.terms.handle.keeper);
        let asked = environment.now();
        let granted = self.ask(&self.keys.permit(place)?, Mode::Write, self.new_owner(), wait).await?;
        if granted.as_ref().is_some_and(|permit| !waited(permit)) {
            keeper.grant_time().note(environment.now().since(asked));
        }
        Ok(granted.map(|permit| (place, permit)))
    }

    async fn ask(&self, key: &Key, mode: Mode, owner: Owner, wait: Wait) -> Result<Option<Acquired>> {
        let args = AcquireArgs {
            key: key.clone(),
            mode,
            owner: Some(owner),
            wait,
            answer_within: self.deadline.left(self.environment()),
            options: &self.terms.handle.options,
            before: None,
            as_lock: false,
            at: self.at,
        };
        self.terms.handle.keeper.acquire(args).await
    }

    fn new_owner(&self) -> Owner {
        Owner::drawn_from(self.environment())
    }

    fn tries(&self) -> bool {
        self.deadline.is_now()
    }

    fn wait(&self) -> Wait {
        self.deadline.wait(self.environment())
    }

    fn environment(&self) -> &dyn Environment {
        &**self.terms.handle.keeper.environment()
    }
}

fn waited(acquired: &Acquired) -> bool {
    matches!(acquired.admission, Admission::New { waited: true })
}

/// Returns the owners that hold a lock or wait for it, each with its client.
fn users(seen: &Inspection) -> impl Iterator<Item = (Owner, &ClientName)> {
    let holders = seen.holders.iter().map(|holder| (holder.owner, &holder.client));
    holders.chain(seen.queue.iter().map(|waiter| (waiter.owner, &waiter.client)))
}
