//! The way to a permit: say how many there are, be the first that waits, take whichever permit becomes free.
//!
//! Each permit is a lock, so there are never more holders than permits, on any engine, whatever else goes wrong: a turnstile that is lost costs
//! the order of waiters, and never a permit too many.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;

use super::keys::{Keys, permits_of};
use super::permit::Permit;
use crate::deadline::{AT_ONCE, Deadline};
use crate::environment::Environment;
use crate::error::{Error, ErrorKind, Result};
use crate::guard::Guard;
use crate::keeper::{AcquireArgs, Acquired, Admission, Attendance, Hold, Site, attended};
use crate::key::Key;
use crate::mode::Mode;
use crate::options::Options;
use crate::owner::Owner;
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
/// The most permits that a call looks at at once before it tries them.
const MOST_LOOKS: usize = 64;
/// The longest that a try waits for other calls of its client, which read the lock of the clients as well.
const ALIKE: Duration = Duration::from_secs(1);
/// The pause between two looks at a store that is silent.
const AGAIN: Duration = Duration::from_millis(100);

/// One acquisition of a permit.
pub(super) struct Taking<'a> {
    pub(super) terms: &'a Terms,
    pub(super) keys: &'a Keys,
    pub(super) deadline: Deadline,
    /// For the locks besides the permit: they are held for as long as the call waits, so a bound on
    /// holds would cost its place in the queue.
    pub(super) unbounded: Arc<Options>,
    pub(super) at: Site,
}

/// One attempt of it: what it holds on its way goes to others if the call is not polled for a lease.
struct Attempt<'a> {
    taking: &'a Taking<'a>,
    attendance: Arc<Attendance>,
}

/// A permit that was taken, before its guard is made.
pub(super) struct Taken {
    pub(super) key: Key,
    pub(super) permit: Acquired,
    pub(super) client: Guard,
    pub(super) number: u32,
    pub(super) waited: bool,
}

impl Taken {
    pub(super) fn into_permit(self, watch: impl FnOnce(Guard) -> Guard) -> Permit {
        let permit = watch(Guard::new(self.permit)).watched_with(&self.client);
        Permit::new(self.key, permit, self.client, self.number)
    }
}

impl Taking<'_> {
    /// Takes a permit. `None` if none was free, or not in time.
    pub(super) async fn take(&self) -> Result<Option<Taken>> {
        let environment = &**self.terms.handle.keeper.environment();
        let take = |attendance| async { Attempt { taking: self, attendance }.take().await };
        attended(environment, self.terms.options().lease(), take).await
    }
}

impl<'a> Deref for Attempt<'a> {
    type Target = Taking<'a>;

    fn deref(&self) -> &Taking<'a> {
        self.taking
    }
}

impl Attempt<'_> {
    async fn take(&self) -> Result<Option<Taken>> {
        loop {
            let Some(client) = self.client().await? else { return Ok(None) };
            let hold = Arc::clone(&client.hold);
            let client = Guard::new(client);
            let taken = tokio::select! {
                biased;
                // None has seen the permit yet, so nothing is lost but time.
                _ = client.lost() => continue,
                taken = self.checked_permit(&hold) => taken?,
            };
            let Some((place, permit, waited)) = taken else { return Ok(None) };
            // Once more a look: one of the two may have been lost beside the last answer, or while this call was not polled.
            let is_received = permit.hold.receive() && hold.receive();
            if !is_received || !client.is_valid() || !permit.hold.is_valid() {
                continue;
            }
            let number = u32::try_from(place + 1).unwrap_or(u32::MAX);
            let key = self.keys.name.clone();
            return Ok(Some(Taken { key, permit, client, number, waited }));
        }
    }

    /// Reads the lock of the clients, as every client does that has a permit or waits for one.
    async fn client(&self) -> Result<Option<Acquired>> {
        let (key, owner) = (&self.keys.clients, self.keys.owner());
        if let Some(read) = self.or_wait(self.ask(key, Mode::Read, owner, AT_ONCE, &self.unbounded).await)? {
            return Ok(Some(read));
        }
        // The store is silent; or the try met another call of this client, which asks for the same.
        if !self.tries() {
            return self.ask(key, Mode::Read, owner, self.max_wait(), &self.unbounded).await;
        }
        let read = self.ask(key, Mode::Read, owner, Some(ALIKE), &self.unbounded).await?;
        // All of them read: only the store can have kept it waiting.
        let silent =
            || Error::new(ErrorKind::Unavailable, format!("the store has not answered for {ALIKE:?}"));
        read.map(Some).ok_or_else(|| silent().with_key(&self.keys.name))
    }

    /// Takes one of the permits, and looks meanwhile on how many others count. Only when this client is a reader: each that reads later sees this one,
    /// so of two that count differently at least one notices. For the same reason one look is enough for all calls that share the read: all that
    /// name this number, for as long as it is held without a gap.
    async fn checked_permit(&self, client: &Hold) -> Result<Option<(usize, Acquired, bool)>> {
        if client.counts_as_others() {
            return self.permit().await;
        }
        let (is_checked, permit) = tokio::try_join!(self.counts_as_others(), self.permit())?;
        if is_checked {
            client.note_counts_as_others();
        } else if permit.is_some() {
            self.check_soon().await?;
            client.note_counts_as_others();
        }
        Ok(permit)
    }

    /// Looks on how many permits others count until the store answers, for one lease, as every wait bears an outage.
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
    async fn counts_as_others(&self) -> Result<bool> {
        self.or_wait(self.check().await.map(|()| Some(()))).map(|known| known.is_some())
    }

    /// Returns nothing instead of the error that the store did not answer, where the caller waits.
    fn or_wait<T>(&self, answer: Result<Option<T>>) -> Result<Option<T>> {
        match answer {
            Err(error) if error.kind().is_silence() && !self.tries() => Ok(None),
            answer => answer,
        }
    }

    /// Fails if another client, or another call of this one, counts on another number of permits.
    ///
    /// The store shows one reader of each client, the one whose grant the later ones share. So a call may pass only if the reader that the store
    /// shows of its own client says the same number: that is the one by which other clients know it.
    async fn check(&self) -> Result<()> {
        let keeper = &self.terms.handle.keeper;
        let shown = keeper.inspect_as_others(&self.keys.clients).await?;
        let here = keeper.with_details(&self.keys.clients, shown.clone());
        // All of them read, so none waits for another.
        let mut readers = shown.holders.iter().chain(&here.holders);
        let other = readers.find_map(|reader| {
            let count = permits_of(reader.owner)?;
            (count != self.keys.count()).then_some((count, &reader.client))
        });
        let Some((count, client)) = other else { return Ok(()) };
        let message = format!(
            "the client {client} uses this name as a semaphore of {count} permits, and not of {}: all clients must name the same number",
            self.keys.count()
        );
        Err(Error::new(ErrorKind::Invalid, message).with_key(&self.keys.name))
    }

    /// Takes one of the permits, and says which, and whether others went first.
    async fn permit(&self) -> Result<Option<(usize, Acquired, bool)>> {
        if self.tries() {
            let tried = self.try_permits().await?;
            return Ok(tried.map(|(place, permit)| (place, permit, false)));
        }
        // As fair as the locks of these options: an order over all tasks of all processes costs many requests for each turn on some stores.
        let (key, owner) = (&self.keys.turnstile, self.new_owner());
        let turnstile = self.ask(key, Mode::Write, owner, self.max_wait(), &self.unbounded);
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

    /// Tries permits, from one on that is drawn. The first one at once: most often it is free. Before the others are tried they are looked at, twice as
    /// many each time. An error counts only if none was free.
    ///
    /// No more than one is tried at a time: a call that has two for a moment, until it gives one back, makes others find none. So `None` says that each
    /// permit was held, or waited for, at some moment of this call.
    async fn try_permits(&self) -> Result<Option<(usize, Acquired)>> {
        let (all, keeper) = (self.keys.permits(), &self.terms.handle.keeper);
        let first = self.environment().random() as usize % all;
        let permits = (0..all).map(|place| (first + place) % all);
        // Those that this client has it knows without the store.
        let mut others =
            permits.filter(|place| self.keys.permit(*place).is_ok_and(|key| !keeper.holds(&key)));
        let (mut next, mut none) = (1, Ok(None));
        loop {
            let some: Vec<_> = others.by_ref().take(next).collect();
            if some.is_empty() {
                return none;
            }
            for place in self.free_ones(some).await {
                match self.ask_for(place, AT_ONCE).await {
                    Ok(Some(taken)) => return Ok(Some(taken)),
                    Ok(None) => {}
                    Err(error) => none = Err(error),
                }
            }
            next = MOST_LOOKS.min(next * 2);
        }
    }

    /// Returns those of these permits that the store does not show as held or waited for. A single one is not looked at, nor does one drop out that the
    /// store says nothing of: a try tells.
    async fn free_ones(&self, places: Vec<usize>) -> Vec<usize> {
        if places.len() == 1 {
            return places;
        }
        let looks =
            places.into_iter().map(|place| async move { self.may_be_free(place).await.then_some(place) });
        join_all(looks).await.into_iter().flatten().collect()
    }

    async fn may_be_free(&self, place: usize) -> bool {
        let Ok(permit) = self.keys.permit(place) else { return false };
        self.terms.handle.keeper.may_be_free(&permit).await
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
            waits.extend(places[joined..next].iter().map(|place| self.ask_for(*place, self.max_wait())));
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

    async fn ask_for(&self, place: usize, max_wait: Option<Duration>) -> Result<Option<(usize, Acquired)>> {
        // An owner of its own: one that holds a permit already would get the same once more.
        let (environment, keeper) = (self.environment(), &self.terms.handle.keeper);
        let asked = environment.now();
        let (key, owner, options) = (self.keys.permit(place)?, self.new_owner(), &self.terms.handle.options);
        let granted = self.ask(&key, Mode::Write, owner, max_wait, options).await?;
        if granted.as_ref().is_some_and(|permit| !waited(permit)) {
            keeper.grant_time().note(environment.now().since(asked));
        }
        Ok(granted.map(|permit| (place, permit)))
    }

    async fn ask(
        &self,
        key: &Key,
        mode: Mode,
        owner: Owner,
        max_wait: Option<Duration>,
        options: &Arc<Options>,
    ) -> Result<Option<Acquired>> {
        let args = AcquireArgs {
            key: key.clone(),
            mode,
            owner: Some(owner),
            max_wait,
            answer_within: self.deadline.left(self.environment()),
            options,
            attendance: Some(&self.attendance),
            before: None,
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

    fn max_wait(&self) -> Option<Duration> {
        self.deadline.max_wait(self.environment())
    }

    fn environment(&self) -> &dyn Environment {
        &**self.terms.handle.keeper.environment()
    }
}

fn waited(acquired: &Acquired) -> bool {
    matches!(acquired.admission, Admission::New { waited: true })
}
