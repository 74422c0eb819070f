//! Spans and warnings for the crate `tracing`.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tracing::{Span, field};

use super::{Acquisition, ClientView, End, Layer, Outcome};
use crate::environment::{BackgroundTask, Environment, Moment};
use crate::error::Result;
use crate::foreign::{tell, told};
use crate::key::Key;
use crate::owner::Owner;

/// Acquisitions are spread over this many locks, by number.
const SHARDS: u64 = 16;

/// A span of an acquisition, with fields that are filled later. A macro, because names of spans and fields must be known to the compiler.
macro_rules! span {
    ($name:literal, $acquisition:ident, $first:literal, $second:literal) => {
        tracing::debug_span!(
            $name,
            "ylock.engine" = $acquisition.engine,
            "ylock.client" = %$acquisition.client,
            "ylock.group" = $acquisition.key.group(),
            "ylock.name" = $acquisition.key.name(),
            "ylock.mode" = %$acquisition.mode,
            "ylock.permits" = $acquisition.permits,
            "ylock.owner" = %$acquisition.owner,
            $first = field::Empty,
            $second = field::Empty,
        )
    };
}

/// A layer that makes a span for each acquisition and for each hold, and warns of those that take too long.
///
/// - `ylock.acquire` (debug) lasts from the call until it is granted or not, and has the fields `ylock.engine`, `ylock.client`, `ylock.group`,
///   `ylock.name`, `ylock.mode`, `ylock.owner`, of a permit `ylock.permits`, at its end `ylock.outcome` (`granted`, `reentered`, `not_free`, `cancelled`, `failed`)
///   and, if it failed, `error.type`.
/// - `ylock.hold` (debug) lasts from then until the guard is let go, and follows from the first. It has the same fields, and at its end `ylock.end`: `released`
///   or `lost`, with `ylock.reason`.
/// - A wait or a hold that lasts longer than its threshold is warned of while it lasts, once.
///
/// Both are children of the span in which the lock was asked for. A lost lock is always warned of, with or without this layer, at the
/// moment when the client learns of it.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use ylock::Ylock;
/// use ylock::layer::TracingLayer;
///
/// let ylock = Ylock::in_memory().layer(TracingLayer::new().with_slow_hold(Duration::from_secs(5)));
/// ```
#[derive(Clone, Debug)]
pub struct TracingLayer(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    slow_wait: Duration,
    slow_hold: Duration,
    /// The clock of all moments here: that of the first client. Moments of two clients may not be compared.
    environment: OnceLock<Arc<dyn Environment>>,
    shards: [Mutex<HashMap<u64, Stay>>; SHARDS as usize],
    /// The task that looks for waits and holds that take too long.
    watch: BackgroundTask,
}

/// An acquisition that waits or is held.
#[derive(Debug)]
struct Stay {
    /// Shared, because cloning a span calls the subscriber, which may do anything: also use a lock whose stay is in this shard.
    span: Arc<Kept>,
    /// Named in warnings: no subscriber may want the span.
    key: Key,
    owner: Owner,
    since: Moment,
    holds: bool,
    warned: bool,
}

/// A span whose end is told to the subscriber in a call of its own: it may come in the middle of a
/// panic, and a second one would end the process.
#[derive(Debug)]
struct Kept(Span);

impl Drop for Kept {
    fn drop(&mut self) {
        told(|| drop(std::mem::replace(&mut self.0, Span::none())));
    }
}

impl TracingLayer {
    /// Creates a layer with warnings after a wait of 10 s and a hold of 30 s.
    pub fn new() -> Self {
        Self::with_thresholds(Duration::from_secs(10), Duration::from_secs(30))
    }

    /// Sets the time after which a wait is warned of. Zero never warns.
    #[must_use]
    pub fn with_slow_wait(self, slow: Duration) -> Self {
        Self::with_thresholds(slow, self.0.slow_hold)
    }

    /// Sets the time after which a hold is warned of. Zero never warns.
    #[must_use]
    pub fn with_slow_hold(self, slow: Duration) -> Self {
        Self::with_thresholds(self.0.slow_wait, slow)
    }

    fn with_thresholds(slow_wait: Duration, slow_hold: Duration) -> Self {
        Self(Arc::new(Shared {
            slow_wait,
            slow_hold,
            environment: OnceLock::new(),
            shards: Default::default(),
            watch: BackgroundTask::default(),
        }))
    }
}

impl Default for TracingLayer {
    fn default() -> Self {
        Self::new()
    }
}

impl Layer for TracingLayer {
    fn attached(&self, client: &ClientView) {
        if let Some(environment) = client.environment() {
            self.0.environment.get_or_init(|| environment);
        }
    }

    fn acquiring(&self, acquisition: &Acquisition) -> Result<()> {
        self.0.ensure_running();
        let span = Kept(span!("ylock.acquire", acquisition, "ylock.outcome", "error.type"));
        self.0.begin(acquisition, span, false);
        Ok(())
    }

    fn acquired(&self, acquisition: &Acquisition, outcome: &Outcome, _waited: Duration) {
        let Some(waited) = self.0.end(acquisition.number) else { return };
        waited.span.0.record("ylock.outcome", word(outcome));
        match outcome {
            Outcome::Failed(error) => drop(waited.span.0.record("error.type", error.kind().as_str())),
            Outcome::Granted { .. } | Outcome::Reentered => {
                let span = Kept(span!("ylock.hold", acquisition, "ylock.end", "ylock.reason"));
                span.0.follows_from(&waited.span.0);
                self.0.begin(acquisition, span, true);
            }
            Outcome::Cancelled | Outcome::NotFree => {}
        }
    }

    fn ended(&self, acquisition: &Acquisition, end: End, _held: Duration) {
        let Some(held) = self.0.end(acquisition.number) else { return };
        match end {
            End::Released => held.span.0.record("ylock.end", "released"),
            End::Lost(reason) => {
                held.span.0.record("ylock.end", "lost").record("ylock.reason", reason.as_str())
            }
        };
    }
}

fn word(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Cancelled => "cancelled",
        Outcome::Failed(_) => "failed",
        Outcome::Granted { .. } => "granted",
        Outcome::NotFree => "not_free",
        Outcome::Reentered => "reentered",
    }
}

impl Shared {
    fn shard(&self, number: u64) -> MutexGuard<'_, HashMap<u64, Stay>> {
        self.shards[(number % SHARDS) as usize].lock()
    }

    fn begin(&self, acquisition: &Acquisition, span: Kept, holds: bool) {
        let Acquisition { number, ref key, owner, .. } = *acquisition;
        let since = self.environment.get().map_or(Moment::ZERO, |environment| environment.now());
        let (span, key) = (Arc::new(span), key.clone());
        self.shard(number).insert(number, Stay { span, key, owner, since, holds, warned: false });
    }

    fn end(&self, number: u64) -> Option<Stay> {
        self.shard(number).remove(&number)
    }

    /// Starts the task that looks for waits and holds that take too long, unless it runs.
    fn ensure_running(self: &Arc<Self>) {
        let Some(environment) = self.environment.get().filter(|environment| environment.enter()) else {
            return;
        };
        let thresholds = [self.slow_wait, self.slow_hold];
        let Some(shortest) = thresholds.into_iter().filter(|slow| !slow.is_zero()).min() else { return };
        let pause = (shortest / 4).clamp(Duration::from_millis(10), Duration::from_secs(1));
        let (open, time) = (Arc::downgrade(self), Arc::clone(environment));
        self.watch.start(environment, move || {
            Box::pin(look_for_slow(Weak::clone(&open), Arc::clone(&time), pause))
        });
    }

    fn warn_of_slow(&self, now: Moment) {
        for shard in &self.shards {
            let mut slow = Vec::new();
            for stay in shard.lock().values_mut().filter(|stay| !stay.warned) {
                let threshold = if stay.holds { self.slow_hold } else { self.slow_wait };
                let lasts = now.since(stay.since);
                if !threshold.is_zero() && lasts >= threshold {
                    stay.warned = true;
                    slow.push((Arc::clone(&stay.span), stay.key.clone(), stay.owner, stay.holds, lasts));
                }
            }
            // A subscriber may do anything, also use a lock, or panic.
            for (span, key, owner, holds, lasts) in slow {
                let seconds = lasts.as_secs_f64();
                let what = if holds {
                    "a lock has been held for a long time"
                } else {
                    "a caller has waited for a lock for a long time"
                };
                // The panic of a warning ends inside the span: to leave a span is to call the
                // subscriber, too.
                told(|| span.0.in_scope(|| tell!(warn, ?key, %owner, seconds, "{what}")));
            }
        }
    }
}

async fn look_for_slow(shared: Weak<Shared>, environment: Arc<dyn Environment>, pause: Duration) {
    while let Some(shared) = shared.upgrade() {
        shared.warn_of_slow(environment.now());
        drop(shared);
        environment.sleep(pause).await;
    }
}
