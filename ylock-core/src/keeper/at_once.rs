//! An entry whose engine answers at once needs no driver: the thread that would have started one carries out what the entry decides, on the
//! spot. The driver begins where the engine has to wait.
//!
//! The entry counts as driven meanwhile, so that there is one contender per key here too: other threads change the entry, and leave the rest to
//! this one.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::caller_drives::CallerDrives;
use super::effects::{Effects, Told};
use super::entry::{Context, Entry, Step};
use super::{Keeper, panicked};
use crate::error::Result;
use crate::key::Key;

/// What the driver needs to know of the change that made it necessary.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Origin {
    /// The waiter that has just come: it is granted at once if it is granted by the same change.
    pub(super) arriving: Option<u64>,
    /// True if the caller that makes this change can poll the driver that it makes necessary.
    pub(super) caller_drives: bool,
}

thread_local! {
    /// True while this thread does what follows from a change.
    static IS_AT_IT: Cell<bool> = const { Cell::new(false) };
}

/// The outermost change of which this thread does what follows; only then it carries out what an entry decides. Over when it is dropped.
pub(super) struct Outermost;

impl Outermost {
    /// Returns nothing if the thread is at it already: then a waker has dropped a guard, and were that given back here, too, the next waiter's
    /// waker might drop its own, and so on, as deep as there are waiters.
    pub(super) fn begin() -> Option<Self> {
        // Made only where it is wanted: it acts when it is dropped.
        (!IS_AT_IT.replace(true)).then(|| Self)
    }
}

impl Drop for Outermost {
    fn drop(&mut self) {
        IS_AT_IT.set(false);
    }
}

impl Keeper {
    /// Carries out `step` and what follows from it, for as long as the engine answers at once. Returns the driver that goes on from there, if
    /// that is for the caller to poll.
    pub(super) fn go_on_at_once(
        self: &Arc<Self>,
        key: &Key,
        mut step: Step,
        origin: Origin,
        told: &mut Told,
        outermost: Option<&Outermost>,
    ) -> Option<CallerDrives> {
        if outermost.is_some() {
            while let Some(next) = self.carry_out(key, step, told) {
                if matches!(next, Step::Nothing) {
                    return None;
                }
                step = next;
            }
            return self.leave_to_driver(key, origin);
        }
        self.leave_to_driver(key, Origin::default())
    }

    /// Has a driver go on. Returns it, if that is for the caller to poll.
    fn leave_to_driver(self: &Arc<Self>, key: &Key, origin: Origin) -> Option<CallerDrives> {
        let running = self.change(key, |entry, _, _| entry.running(origin))?;
        self.drive(key, running)
    }

    /// Carries out one step. Returns the next one; `None` if this one is a driver's.
    fn carry_out(self: &Arc<Self>, key: &Key, step: Step, told: &mut Told) -> Option<Step> {
        let engine = self.engine.at_once()?;
        match step {
            Step::Acquire(contender) => {
                let answer = caught(|| engine.acquire(&contender.request))?;
                self.after(key, told, |entry, context, effects| {
                    entry.answered(context, &contender.request, answer, effects);
                })
            }
            Step::Release { id, next, attempts: 0, .. } => {
                let answer = caught(|| Some(engine.release(key, id, next.as_deref())))?;
                self.after(key, told, |entry, context, effects| match answer {
                    Ok(answer) => entry.released(context, id, answer, effects),
                    // The attempt may have happened. A driver makes the next one.
                    Err(_) => entry.release_dropped(),
                })
            }
            // Tried before: the driver knows when it is time again.
            Step::Release { .. } => None,
            Step::Nothing => Some(Step::Nothing),
        }
    }

    /// Changes the entry by an answer, and returns the next step, in one look at the shard. What log and layers are told comes last, behind
    /// what they are told of the changes before.
    fn after(
        self: &Arc<Self>,
        key: &Key,
        told: &mut Told,
        change: impl FnOnce(&mut Entry, &Context<'_>, &mut Effects),
    ) -> Option<Step> {
        let (step, effects) = self.decide(Effects::default(), key, |entry, context, effects| {
            change(entry, context, effects);
            entry.step()
        })?;
        drop(effects.happen_untold(self, key, told));
        Some(step)
    }
}

/// Returns the answer of a call to the engine. A call that panics has failed, as one that a driver makes.
fn caught<T>(call: impl FnOnce() -> Option<Result<T>>) -> Option<Result<T>> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|_| Some(Err(panicked())))
}
