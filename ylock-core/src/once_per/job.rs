//! One call: from the first look at the last run to the word that this one is done.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use crate::acquire::{acquire_or_time_out, give_back};
use crate::engine::Holder;
use crate::error::{Error, ErrorKind, Result};
use crate::foreign::tell;
use crate::guard::Guard;
use crate::job_run::JobRun;
use crate::keeper::{Keeper, Site};
use crate::key::Key;
use crate::mode::Mode;
use crate::owner::Owner;
use crate::period::Period;
use crate::retry_deadline::RetryDeadline;
use crate::terms::Terms;
use crate::token::Token;

use super::verdict::{Verdict, judge};

/// A call that waits for the lock looks so many times per lease whether another one has begun the period meanwhile.
const LOOKS_PER_LEASE: u32 = 10;
/// Whatever the lease is.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// A job, in the period of one call.
pub(super) struct Job<'a> {
    terms: &'a Terms,
    key: Key,
    period: Period,
    /// When the period of the call begins, by the wall clock of this client: microseconds since 1970.
    begins: i64,
}

/// How the way to the lock has ended.
pub(super) enum Entered {
    /// With the lock, and the work to be done.
    ToDo(Guard),
    Running(JobRun),
    Over(JobRun),
}

impl<'a> Job<'a> {
    pub(super) fn new(terms: &'a Terms, key: Key, period: Period) -> Result<Self> {
        let checked = period.check().and_then(|()| {
            // Once: a call that waits for hours still means the period in which it was made.
            period.begin_of(terms.handle.keeper.environment().wall_micros())
        });
        let begins = checked.map_err(|error| error.with_key(&key))?;
        Ok(Self { terms, key, period, begins })
    }

    fn keeper(&self) -> &Arc<Keeper> {
        &self.terms.handle.keeper
    }

    /// Acquires the lock, unless it turns out that there is nothing to do.
    pub(super) async fn enter(&self, at: Site) -> Result<Entered> {
        // Most replicas find out here, with one request and without the lock.
        if let Some(over) = self.look().await? {
            return Ok(over);
        }
        let guard = {
            let mut acquiring = pin!(acquire_or_time_out(self.terms, self.key.clone(), Mode::Write, at));
            let environment = self.keeper().environment();
            loop {
                tokio::select! {
                    biased;
                    guard = &mut acquiring => break guard?,
                    () = environment.sleep((self.terms.options().lease() / LOOKS_PER_LEASE).min(LONGEST_PAUSE)) => {}
                }
                // What goes wrong with a look, the acquisition will tell.
                if let Ok(Some(over)) = self.look().await {
                    return Ok(over);
                }
            }
        };
        self.judge_under(guard).await
    }

    /// Looks without the lock. `None` if the lock is needed to know more.
    async fn look(&self) -> Result<Option<Entered>> {
        let last = self.keeper().last_run(&self.key).await?;
        let verdict = self.judge(last.as_ref())?;
        let Some(last) = last else { return Ok(None) };
        Ok(match verdict {
            Verdict::ToDo => None,
            Verdict::Over => Some(Entered::Over(last)),
            Verdict::Unfinished => match self.holder_for(&last).await? {
                // A call from within the work itself, which would wait for its own end.
                Some(holder) if Owner::current() == Some(holder.owner) => Some(Entered::Running(last)),
                // Whether it is under way or not: a waiter for the lock is there when it is free.
                _ if self.period.is_until_done() => None,
                Some(_) => Some(Entered::Running(last)),
                None => Some(Entered::Over(last)),
            },
        })
    }

    /// Judges the last run under the lock: no other call is at it.
    async fn judge_under(&self, guard: Guard) -> Result<Entered> {
        let last = self.ask_under(&guard, || self.keeper().last_run(&self.key)).await?;
        let verdict = self.judge(last.as_ref())?;
        let run = match (verdict, last) {
            (Verdict::ToDo, _) | (_, None) => return Ok(Entered::ToDo(guard)),
            (Verdict::Unfinished, _) if self.period.is_until_done() => return Ok(Entered::ToDo(guard)),
            (_, Some(last)) => last,
        };
        // Not by its drop: a program that ends now would leave the lock until the end of its lease.
        give_back(self.terms, guard).await;
        Ok(Entered::Over(run))
    }

    fn judge(&self, last: Option<&JobRun>) -> Result<Verdict> {
        let now = self.period.begin_of(self.keeper().environment().wall_micros());
        let verdict = now.and_then(|now| judge(last, self.begins, now, self.period));
        verdict.map_err(|error| error.with_key(&self.key))
    }

    /// Returns the holder of the lock, if that has begun this run: the same client, under the same grant of the store.
    async fn holder_for(&self, run: &JobRun) -> Result<Option<Holder>> {
        // An inspection may miss one that has just come, and its run would look as if it were over.
        let holders = self.keeper().exact_holders(&self.key).await?;
        let grant = |token: Option<Token>| token.map(Token::of_store);
        let has_begun_it = |holder: &Holder| {
            holder.mode == Mode::Write
                && holder.client == run.client
                && grant(holder.token) == grant(run.token)
        };
        Ok(holders.into_iter().find(has_begun_it))
    }

    /// Writes down that the run begins, and returns when the store has it and the lock is still held. Returns the other run if the store has a later
    /// one: a late write of a former holder.
    pub(super) async fn begin(&self, guard: &Guard) -> Result<Result<JobRun, JobRun>> {
        let keeper = self.keeper();
        let since = keeper.environment().wall_micros();
        let run = JobRun::begun(self.begins, guard.token(), since, keeper.name().get());
        if !self.store(&run, guard).await? {
            // One that has lost the lock meanwhile is told that, whatever the next holder has written.
            guard.check()?;
            let last = keeper.last_run(&self.key).await?;
            return match (self.judge(last.as_ref())?, last) {
                (Verdict::Over, Some(later)) => Ok(Err(later)),
                (_, last) => Err(self.refused(last)),
            };
        }
        // The next holder reads the run only if the store had it before the lock was that holder's.
        guard.check()?;
        Ok(Ok(run))
    }

    /// Writes down that the run is done.
    pub(super) async fn end(&self, guard: &Guard, run: JobRun) {
        let stored = self.store(&run.done(), guard).await;
        if let Err(error) = stored {
            tell!(
                warn, engine = self.keeper().engine().name(), key = ?self.key, error = format!("{error:#}"),
                "the work is done, but the store has not confirmed that it knows: it counts as begun, and with `until_done` it may be repeated"
            );
        }
    }

    /// Writes down a run. Returns whether the store has it.
    async fn store(&self, run: &JobRun, guard: &Guard) -> Result<bool> {
        // It may have happened, and happens no other way a second time.
        self.ask_under(guard, || self.keeper().store_run(&self.key, run, self.period.kept())).await
    }

    /// Asks until the store has answered, the lock is lost, or the store has been silent for about one lease.
    async fn ask_under<T, F: Future<Output = Result<T>>>(
        &self,
        guard: &Guard,
        ask: impl Fn() -> F,
    ) -> Result<T> {
        let environment = self.keeper().environment();
        let mut retry_deadline = RetryDeadline::new(&**environment, self.terms.options().lease());
        loop {
            match ask().await {
                Err(error) if guard.is_valid() => retry_deadline.retry_or_fail(error).await?,
                answer => return answer,
            }
        }
    }

    /// Returns the error for a store that refuses the run of the lock's holder although it shows no later period.
    fn refused(&self, last: Option<JobRun>) -> Error {
        let message = format!(
            "the store has a run of this job under a larger token than this holder's, so its tokens have fallen: {last:?}. The job is run again \
             in the next period"
        );
        Error::new(ErrorKind::Unexpected, message).with_key(&self.key)
    }
}
