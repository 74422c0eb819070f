//! The one seam for time, randomness and tasks.
//!
//! Nothing else in ylock reads a clock, sleeps, draws a random number or spawns. That is what lets the same code run
//! on a real machine, under tokio's paused time, and in a simulation where one seed decides everything.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A future that an [`Environment`] runs or returns.
pub type BoxFuture = Pin<Box<dyn Future<Output = ()> + Send + 'static>>;

/// A point in time on an environment's own clock. Only moments of one environment can be compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Moment(u64);

impl Moment {
    /// The first moment; every clock starts at or after it.
    pub const ZERO: Self = Self(0);

    /// The moment this many nanoseconds after [`ZERO`](Self::ZERO).
    pub fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since [`ZERO`](Self::ZERO).
    pub fn as_nanos(self) -> u64 {
        self.0
    }

    /// How long after `earlier` this is; zero if it is not after it.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// This moment, `duration` later, or the last moment there is.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }
}

/// Time, randomness and tasks.
pub trait Environment: fmt::Debug + Send + Sync + 'static {
    /// The present moment, on a clock that never steps back and, on a real machine, counts suspend.
    fn now(&self) -> Moment;

    /// The wall clock: microseconds since 1970. It may step in either direction; nothing that must be safe uses it.
    fn wall_micros(&self) -> i64;

    /// 64 random bits.
    fn random(&self) -> u64;

    /// Ends after `duration` of *running* time.
    fn sleep(&self, duration: Duration) -> BoxFuture;

    /// Starts a task. If there is no runtime that could run it, the future is dropped; whoever spawns must
    /// notice that in the future's own drop.
    fn spawn(&self, future: BoxFuture);

    /// Whether a task that is started here and now would run.
    fn can_spawn(&self) -> bool;
}

impl dyn Environment {
    /// 128 random bits, for identities that are never used again.
    pub fn random_identity(&self) -> u128 {
        (u128::from(self.random()) << 64) | u128::from(self.random())
    }

    /// A duration between a half and three halves of `middle`, so that those who wait do not move in step.
    pub fn jitter(&self, middle: Duration) -> Duration {
        middle.mul_f64(0.5 + self.fraction())
    }

    /// A number from zero on and below one.
    pub fn fraction(&self) -> f64 {
        (self.random() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// A task of which one runs at a time. It dies with its runtime; whoever needs it starts it anew.
#[derive(Debug, Default)]
pub struct Caretaker(Arc<AtomicBool>);

impl Caretaker {
    /// Whether it runs.
    pub fn is_running(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// Starts it, unless it runs.
    pub fn start<F>(&self, environment: &dyn Environment, work: impl FnOnce() -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        if self.is_running() || self.0.swap(true, Ordering::AcqRel) {
            return;
        }
        // Made before it is spawned: where nobody can run it, it is dropped, and that must be noticed.
        let alive = Alive(Arc::clone(&self.0));
        let work = work();
        environment.spawn(Box::pin(async move {
            let _alive = alive;
            work.await;
        }));
    }
}

/// Says that the task does not run any more.
struct Alive(Arc<AtomicBool>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// The environment of a real machine: tokio's timers and tasks, the operating system's randomness, and, for
/// validity, `CLOCK_BOOTTIME` where there is one.
#[derive(Debug)]
pub struct SystemEnvironment {
    clock: ClockSource,
}

/// Which clock tells the moments.
#[derive(Debug)]
enum ClockSource {
    /// Counts suspend: a laptop that slept for an hour knows that its leases are gone.
    Boot,
    /// Tokio's own, so that a test may pause it.
    Tokio(tokio::time::Instant),
}

impl SystemEnvironment {
    /// For stores outside this process, whose leases run on while this machine is suspended.
    pub fn shared() -> Arc<dyn Environment> {
        Arc::new(Self { clock: ClockSource::Boot })
    }

    /// For the in-memory engine and for tests with paused time: all moments are those of tokio's clock.
    pub fn on_tokio_clock() -> Arc<dyn Environment> {
        Arc::new(Self { clock: ClockSource::Tokio(tokio::time::Instant::now()) })
    }
}

impl Environment for SystemEnvironment {
    fn now(&self) -> Moment {
        match &self.clock {
            ClockSource::Boot => boot_time(),
            ClockSource::Tokio(start) => Moment::ZERO.plus(start.elapsed()),
        }
    }

    #[allow(clippy::disallowed_methods, reason = "this is the seam that everybody else uses")]
    fn wall_micros(&self) -> i64 {
        match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_micros()).unwrap_or(i64::MAX),
            Err(before) => -i64::try_from(before.duration().as_micros()).unwrap_or(i64::MAX),
        }
    }

    fn random(&self) -> u64 {
        rand::random()
    }

    #[allow(clippy::disallowed_methods, reason = "this is the seam that everybody else uses")]
    fn sleep(&self, duration: Duration) -> BoxFuture {
        Box::pin(tokio::time::sleep(duration))
    }

    #[allow(clippy::disallowed_methods, reason = "this is the seam that everybody else uses")]
    fn spawn(&self, future: BoxFuture) {
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(future);
        }
    }

    fn can_spawn(&self) -> bool {
        tokio::runtime::Handle::try_current().is_ok()
    }
}

#[cfg(any(target_os = "linux", target_os = "android", target_os = "fuchsia"))]
fn boot_time() -> Moment {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Moment((time.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64))
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "fuchsia")))]
fn boot_time() -> Moment {
    use std::sync::OnceLock;
    use std::time::Instant;
    static START: OnceLock<Instant> = OnceLock::new();
    #[allow(clippy::disallowed_methods, reason = "this is the seam that everybody else uses")]
    Moment::ZERO.plus(START.get_or_init(Instant::now).elapsed())
}

/// 128 random bits, for identities that are never used again.
pub(crate) fn entropy() -> u128 {
    rand::random()
}
