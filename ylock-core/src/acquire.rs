//! One acquisition, from the user's call down through the layers to the keeper.

use std::future::Future;
use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::environment::Moment;
use crate::error::{Error, ErrorKind, Result};
use crate::foreign::tell;
use crate::guard::Guard;
use crate::keeper::{AcquireArgs, Acquired, Admission, Before, Site};
use crate::key::Key;
use crate::layer::{Acquisition, Layer, Layers, Outcome};
use crate::lease::{Lease, lost};
use crate::mode::{Mode, Wait};
use crate::owner::Owner;
use crate::terms::Terms;
use crate::token::Token;
use crate::unlocked::Unlocked;

/// The number of the next acquisition that layers see. One counter for the process: a layer may lie over several clients.
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

/// Acquires, and waits at most as long as the options say.
#[track_caller]
pub(crate) fn acquire_or_time_out(
    terms: &Terms,
    key: Result<Key>,
    mode: Mode,
) -> impl Future<Output = Result<Guard>> {
    acquire_or_time_out_at(terms, key, mode, Location::caller())
}

/// Acquires as [`acquire_or_time_out`] does, for a call at this place of the program.
pub(crate) async fn acquire_or_time_out_at(
    terms: &Terms,
    key: Result<Key>,
    mode: Mode,
    at: Site,
) -> Result<Guard> {
    let key = key?;
    let (wait, before) = (terms.handle.options.wait(), OnceLock::new());
    let acquired = acquire_behind(terms, key.clone(), mode, wait, Some(&before), at).await?;
    acquired.ok_or_else(|| {
        let mut message = format!("the {mode} lock was not granted within the wait of the options, {wait:?}");
        if let Some(before) = before.get() {
            message.push_str(&format!(": {before}"));
        }
        Error::new(ErrorKind::TimedOut, message).with_key(&key)
    })
}

/// Acquires, or returns `None` when the wait is over.
#[track_caller]
pub(crate) fn acquire(
    terms: &Terms,
    key: Result<Key>,
    mode: Mode,
    wait: Wait,
) -> impl Future<Output = Result<Option<Guard>>> {
    let at = Location::caller();
    async move { acquire_behind(terms, key?, mode, wait, None, at).await }
}

/// Acquires as [`acquire`] does, and notes which holders and waiters are before the caller, shortly before the wait is over.
pub(crate) async fn acquire_behind(
    terms: &Terms,
    key: Key,
    mode: Mode,
    wait: Wait,
    before: Option<&OnceLock<Before>>,
    at: Site,
) -> Result<Option<Guard>> {
    let owner = terms.owner.or_else(Owner::current);
    let args = AcquireArgs {
        key,
        mode,
        owner,
        wait,
        answer_within: None,
        options: &terms.handle.options,
        before,
        at,
    };
    let layers = layers_over(terms);
    if layers.is_empty() {
        Ok(terms.handle.keeper.acquire(args).await?.map(Guard::new))
    } else {
        acquire_watched(terms, layers, args).await
    }
}

/// Returns the layers that are told of what is acquired on these terms.
pub(crate) fn layers_over(terms: &Terms) -> Layers {
    let event_bus = terms.handle.keeper.event_bus().map(|bus| bus as Arc<dyn Layer>);
    terms.handle.layers.under(event_bus)
}

/// Returns what layers are told of an acquisition, with the next number.
pub(crate) fn acquisition(terms: &Terms, key: &Key, mode: Mode, owner: Owner, wait: Wait) -> Acquisition {
    let keeper = &terms.handle.keeper;
    Acquisition {
        number: NEXT_NUMBER.fetch_add(1, Ordering::Relaxed),
        engine: keeper.engine().name(),
        client: keeper.name().get(),
        key: key.clone(),
        permits: None,
        mode,
        owner,
        wait,
    }
}

/// Creates the owner of an acquisition for which the caller named none.
fn new_owner(terms: &Terms) -> Owner {
    Owner::drawn_from(&**terms.handle.keeper.environment())
}

/// Acquires, and tells the layers.
async fn acquire_watched(terms: &Terms, layers: Layers, mut args: AcquireArgs<'_>) -> Result<Option<Guard>> {
    let owner = *args.owner.get_or_insert_with(|| new_owner(terms));
    let acquisition = acquisition(terms, &args.key, args.mode, owner, args.wait);
    let acquiring = terms.handle.keeper.acquire(args);
    let told = tell(terms, layers, acquisition, acquiring, Acquired::outcome).await?;
    Ok(told.map(|(acquired, told)| told.watch(Guard::new(acquired))))
}

/// What the layers have been told of an acquisition that was granted, and are to be told of its end.
pub(crate) struct Granted {
    layers: Layers,
    acquisition: Acquisition,
    since: Moment,
}

impl Granted {
    /// Returns the guard whose end the layers are told.
    pub(crate) fn watch(self, guard: Guard) -> Guard {
        guard.watched(self.layers, self.acquisition, self.since)
    }
}

/// Acquires by `acquiring`, and tells the layers of its beginning and its outcome.
pub(crate) async fn tell<T>(
    terms: &Terms,
    layers: Layers,
    acquisition: Acquisition,
    acquiring: impl Future<Output = Result<Option<T>>>,
    outcome_of: impl FnOnce(&T) -> Outcome,
) -> Result<Option<(T, Granted)>> {
    layers.acquiring(&acquisition)?;
    let since = terms.handle.keeper.environment().now();
    let mut waiting = Waiting { terms, layers: &layers, since, acquisition: Some(acquisition) };
    let result = acquiring.await;
    let outcome = match &result {
        Ok(Some(acquired)) => outcome_of(acquired),
        Ok(None) => Outcome::NotFree,
        Err(error) => Outcome::Failed(error.clone()),
    };
    let Some((acquisition, since)) = waiting.end(&outcome) else { return Ok(None) };
    drop(waiting);
    Ok(result?.map(|acquired| (acquired, Granted { layers, acquisition, since })))
}

impl Acquired {
    /// Returns what the layers are told of it.
    pub(crate) fn outcome(&self) -> Outcome {
        match self.admission {
            Admission::Reentered => Outcome::Reentered,
            Admission::New { waited } => Outcome::Granted { waited },
        }
    }
}

/// An acquisition whose outcome the layers are still owed. A caller that stops waiting drops it.
struct Waiting<'a> {
    terms: &'a Terms,
    layers: &'a Layers,
    since: Moment,
    acquisition: Option<Acquisition>,
}

impl Waiting<'_> {
    /// Tells the layers the outcome. Returns also the moment of it: a hold begins where the wait ends.
    fn end(&mut self, outcome: &Outcome) -> Option<(Acquisition, Moment)> {
        let acquisition = self.acquisition.take()?;
        let now = self.terms.handle.keeper.environment().now();
        self.layers.acquired(&acquisition, outcome, now.since(self.since));
        Some((acquisition, now))
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.end(&Outcome::Cancelled);
    }
}

/// Runs `work` under the lock, and stops it if the lock is lost.
#[track_caller]
pub(crate) fn run<W, F>(
    terms: &Terms,
    key: Result<Key>,
    mode: Mode,
    work: W,
) -> impl Future<Output = Result<F::Output>>
where
    W: FnOnce(Lease) -> F,
    F: Future,
{
    let at = Location::caller();
    async move {
        let guard = acquire_or_time_out_at(&with_owner(terms), key, mode, at).await?;
        work_under(terms, guard, work).await
    }
}

/// Runs `work` as [`run`] does, or returns `None` if the wait is over before the lock is granted.
#[track_caller]
pub(crate) fn run_after<W, F>(
    terms: &Terms,
    key: Result<Key>,
    wait: Wait,
    work: W,
) -> impl Future<Output = Result<Option<F::Output>>>
where
    W: FnOnce(Lease) -> F,
    F: Future,
{
    let at = Location::caller();
    async move {
        match acquire_behind(&with_owner(terms), key?, Mode::Write, wait, None, at).await? {
            Some(guard) => work_under(terms, guard, work).await.map(Some),
            None => Ok(None),
        }
    }
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

async fn work_under<W, F>(terms: &Terms, guard: Guard, work: W) -> Result<F::Output>
where
    W: FnOnce(Lease) -> F,
    F: Future,
{
    let output = stopped_if_lost(&guard, work).await?;
    give_back(terms, guard).await;
    Ok(output)
}

/// Runs `work` as the owner of a lock. Drops it if the lock is lost, and fails if it was lost by the end of the work.
pub(crate) async fn stopped_if_lost<W, F>(guard: &Guard, work: W) -> Result<F::Output>
where
    W: FnOnce(Lease) -> F,
    F: Future,
{
    let owner = guard.owner();
    let output = tokio::select! {
        // The loss is looked at first: work that is ready in the same moment must not run on.
        biased;
        _ = guard.lost() => return Err(lost(guard)),
        // The call is inside the scope, too: what the work does before its first await belongs to the owner.
        output = owner.scope(async { work(guard.lease()).await }) => output,
    };
    guard.check()?;
    Ok(output)
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
