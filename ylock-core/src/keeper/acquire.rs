//! The way in: granted at once, refused at once, or waiting in the queue.

use std::future::pending;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::oneshot;

use super::attendance::Attendance;
use super::before::Before;
use super::caller_drives::{CallerDrives, drive};
use super::effects::{Effects, Reply};
use super::self_wait::{Caller, Site};
use super::waiter::Waiter;
use super::{Acquired, Admission, Hold, Keeper, closed};
use crate::deadline::AT_ONCE;
use crate::environment::Moment;
use crate::error::{Error, ErrorKind, Result};
use crate::key::Key;
use crate::mode::Mode;
use crate::options::{Fairness, Options};
use crate::owner::Owner;

/// A wait that ends later than this after its time ends late because this process did not run.
const LATE: Duration = Duration::from_millis(20);
/// How much longer such a wait lasts, so that answers which came meanwhile are read.
const LAST_MOMENT: Duration = Duration::from_millis(20);

/// The acquisition that a caller wants.
#[derive(Debug)]
pub(crate) struct AcquireArgs<'a> {
    pub(crate) key: Key,
    pub(crate) mode: Mode,
    /// `None` for a caller that is its own owner.
    pub(crate) owner: Option<Owner>,
    pub(crate) max_wait: Option<Duration>,
    /// The longest that a try waits for the answer of the store; `None` for as long as the engine lets a request take.
    pub(crate) answer_within: Option<Duration>,
    pub(crate) options: &'a Arc<Options>,
    /// Of a call that holds this lock on its way to others, and [receives](Hold::receive) it when it has all of them.
    pub(crate) attendance: Option<&'a Arc<Attendance>>,
    /// The place to note which holders and waiters are before the caller, shortly before its wait is over.
    pub(crate) before: Option<&'a OnceLock<Before>>,
    /// The place of the call.
    pub(crate) at: Site,
}

impl AcquireArgs<'_> {
    /// Notes that the caller has read that this was granted. Returns whether it was not taken back before.
    fn reads(&self, acquired: &Acquired) -> bool {
        // One that another call of its owner has entered first goes by the attendance of that call: it must not be
        // taken from both because that one is not polled.
        let is_on_its_way = self.attendance.is_some() && acquired.admission != Admission::Reentered;
        if is_on_its_way { !acquired.hold.is_over() } else { acquired.hold.receive() }
    }

    fn tries(&self) -> bool {
        self.max_wait == AT_ONCE
    }
}

enum Entered {
    Now(Acquired),
    NotFree,
    Waits(Waiting),
}

impl Keeper {
    /// Acquires, or returns `None` when the wait is over.
    pub(crate) async fn acquire(self: &Arc<Self>, args: AcquireArgs<'_>) -> Result<Option<Acquired>> {
        let (limit, before) =
            (args.max_wait.filter(|limit| !limit.is_zero()).or(args.answer_within), args.before);
        let mut left = limit;
        loop {
            let waiting = match self.enter(&args)? {
                Entered::Now(acquired) => return Ok(Some(acquired)),
                Entered::NotFree => return Ok(None),
                Entered::Waits(waiting) => waiting,
            };
            let arrived = waiting.arrived;
            match waiting.wait(left, before).await {
                // The answer lay unread for so long that the lock went to others.
                Ok(Some(acquired)) if !args.reads(&acquired) => drop(acquired),
                reply => return reply,
            }
            let waited = self.environment.now().since(arrived);
            left = left.map(|left| left.saturating_sub(waited));
        }
    }

    fn enter(self: &Arc<Self>, args: &AcquireArgs<'_>) -> Result<Entered> {
        let again = args.owner.and_then(|owner| self.reenter(&args.key, owner, args.mode, args.at));
        match again {
            Some(again) => again.map(Entered::Now),
            None => self.queue_up(args),
        }
    }

    /// Grants at once if this owner holds the key already. The shortest way: no task, no store, no clock but the lease's.
    pub(crate) fn reenter(
        self: &Arc<Self>,
        key: &Key,
        owner: Owner,
        mode: Mode,
        at: Site,
    ) -> Option<Result<Acquired>> {
        let mut shard = self.shard(key).lock();
        let hold = shard.get_mut(key)?.reenter(key, owner, mode, at)?;
        drop(shard);
        Some(hold.map(|hold| self.reentered(hold, mode)))
    }

    fn reentered(self: &Arc<Self>, hold: Arc<Hold>, mode: Mode) -> Acquired {
        Acquired { hold, mode, admission: Admission::Reentered, keeper: Arc::clone(self), spent: false }
    }

    fn queue_up(self: &Arc<Self>, args: &AcquireArgs<'_>) -> Result<Entered> {
        args.options.check()?;
        if !self.environment.enter() {
            return Err(Error::new(ErrorKind::Invalid, "locks must be acquired inside a tokio runtime"));
        }
        self.ensure_running();
        let tries = args.tries();
        let (waiter, answer) = self.waiter(args, tries);
        let number = waiter.number;
        let mut waiting = Waiting {
            keeper: Arc::clone(self),
            key: args.key.clone(),
            number,
            arrived: waiter.arrived,
            answer,
            drives: None,
            own: false,
            ended: true,
        };
        let mut effects = Effects::for_arrival(number);
        let mut shard = self.shard(&args.key).lock();
        if self.closed.load(Ordering::SeqCst) {
            return Err(closed());
        }
        if !shard.contains_key(&args.key) {
            self.entries.fetch_add(1, Ordering::SeqCst);
        }
        let entry = shard.entry(args.key.clone()).or_default();
        // Another task of the same owner may have got in since the first look: this one must not queue behind it.
        let again = args.owner.and_then(|owner| entry.reenter(&args.key, owner, args.mode, args.at));
        if let Some(again) = again {
            return again.map(|hold| Entered::Now(self.reentered(hold, args.mode)));
        }
        let alone = entry.may_try(args.mode);
        waiting.own = !tries && entry.is_held_by(waiter.caller);
        entry.push(waiter);
        entry.advance(&self.context(&args.key), &mut effects);
        // A waiter that only tries and was not granted at once stays for the store's answer only if no holder or waiter is before it.
        let removed = (tries && !alone).then(|| entry.remove(number)).flatten();
        effects.note_step(entry);
        drop(shard);
        let refused = removed.is_some();
        waiting.ended = refused;
        waiting.drives = effects.happen(self, &args.key);
        Ok(if refused { Entered::NotFree } else { Entered::Waits(waiting) })
    }

    fn waiter(&self, args: &AcquireArgs<'_>, tries: bool) -> (Waiter, oneshot::Receiver<Reply>) {
        let (reply, answer) = oneshot::channel();
        let strict = args.options.fairness() == Fairness::Strict;
        let waiter = Waiter {
            number: self.next_number.fetch_add(1, Ordering::Relaxed),
            owner: args.owner.unwrap_or_else(|| Owner::drawn_from(&*self.environment)),
            named: args.owner.is_some(),
            mode: args.mode,
            tries,
            met_others: false,
            arrived: self.environment.now(),
            ticket: strict.then(|| self.engine.ticket()),
            options: Arc::clone(args.options),
            attendance: args.attendance.cloned(),
            caller: Caller::current(args.at),
            reply,
        };
        (waiter, answer)
    }

    /// Ends a wait. Returns the silence of the store, if that was what the waiter has waited for; `None` if the waiter was answered
    /// already.
    fn stop_waiting(self: &Arc<Self>, key: &Key, number: u64) -> Option<Option<Error>> {
        let stopped = self.change(key, |entry, context, effects| {
            let removed = entry.remove(number)?;
            let silence = entry.silence(context.now());
            entry.advance(context, effects);
            Some((removed, silence))
        });
        let (removed, silence) = stopped.flatten()?;
        drop(removed);
        Some(silence.map(|error| self.about(key, error)))
    }
}

/// A place in the local queue. Dropping it leaves the queue.
struct Waiting {
    keeper: Arc<Keeper>,
    key: Key,
    number: u64,
    arrived: Moment,
    answer: oneshot::Receiver<Reply>,
    /// The driver, if this waiter made it necessary. Dropped after the place in the queue is left.
    drives: Option<CallerDrives>,
    /// The caller held the lock itself when it began to wait.
    own: bool,
    ended: bool,
}

impl Waiting {
    async fn wait(mut self, limit: Option<Duration>, before: Option<&OnceLock<Before>>) -> Reply {
        let (keeper, key, number) = (Arc::clone(&self.keeper), self.key.clone(), self.number);
        let due = limit.map(|limit| keeper.environment.now().plus(limit));
        let timer = async {
            match limit {
                Some(limit) => keeper.environment.sleep(limit).await,
                None => pending().await,
            }
        };
        let look = keeper.look_before(&key, number, limit, before);
        let warning = keeper.warn_of_self_wait(&key, number, self.own);
        tokio::select! {
            // A lock that was granted at the last moment is not lost.
            biased;
            answer = drive(&mut self.drives, &mut self.answer) => return self.end(answer),
            () = timer => {}
            never = look => match never {},
            never = warning => match never {},
        }
        if due.is_some_and(|due| keeper.environment.now().since(due) > LATE) {
            // This process did not run: an answer may lie there unread, and the store would be called silent.
            let last_moment = keeper.environment.sleep(LAST_MOMENT);
            tokio::select! {
                biased;
                answer = drive(&mut self.drives, &mut self.answer) => return self.end(answer),
                () = last_moment => {}
            }
        }
        if let Some(silence) = keeper.stop_waiting(&key, number) {
            self.ended = true;
            return silence.map_or(Ok(None), Err);
        }
        let answer = drive(&mut self.drives, &mut self.answer).await;
        self.end(answer)
    }

    fn end(&mut self, answer: Result<Reply, oneshot::error::RecvError>) -> Reply {
        self.ended = true;
        answer.unwrap_or_else(|_| {
            Err(Error::new(ErrorKind::Unexpected, "internal error: a waiter was dropped without an answer"))
        })
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if !self.ended {
            self.keeper.stop_waiting(&self.key, self.number);
        }
    }
}
