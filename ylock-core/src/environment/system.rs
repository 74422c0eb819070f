//! The environment of a real machine.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::runtimes::{self, Runtimes};
use super::timer::Timer;
use super::{Answer, BoxFuture, Environment, Moment, RuntimeId};

/// The environment of a real machine: tokio's timers and tasks, the operating system's randomness, and a clock for validity.
///
/// # Suspend
/// What the clock counts while the machine is suspended depends on the system:
///
/// | system | clock | counts suspend |
/// |---|---|---|
/// | Linux, Android, Fuchsia | `CLOCK_BOOTTIME` | yes |
/// | Windows | that of `std::time::Instant`, `QueryPerformanceCounter` | yes, as Microsoft documents it; not tried |
/// | macOS, iOS | that of `std::time::Instant`, `CLOCK_UPTIME_RAW` | no |
/// | others | that of `std::time::Instant` | not known |
///
/// Where it does not count, a holder that was suspended relies on its lease for that much too long.
///
/// Background work runs in the runtimes in which the client is used, and on a thread of the client's own.
#[derive(Debug)]
pub struct SystemEnvironment {
    clock: ClockSource,
    /// What all numbers of chance are mixed with. Processes that were forked go on with one sequence of them where the generator of the thread had
    /// been used before; environments that they make after that must not draw the same identities.
    salt: u64,
    runtimes: Arc<Runtimes>,
}

/// The clock that tells the moments.
#[derive(Debug)]
enum ClockSource {
    /// Counts suspend where the system has such a clock: a laptop that slept for an hour knows that its leases are gone.
    Boot,
    /// Tokio's own, so that a test may pause it.
    Tokio(tokio::time::Instant),
}

impl SystemEnvironment {
    /// Creates an environment for stores outside this process, whose leases run on while this machine is suspended; see
    /// [Suspend](Self#suspend).
    pub fn shared() -> Arc<dyn Environment> {
        Arc::new(Self { clock: ClockSource::Boot, salt: salt(), runtimes: Arc::new(Runtimes::new(false)) })
    }

    /// Creates an environment for the in-memory engine and for tests with paused time: all moments are those of tokio's clock.
    pub fn on_tokio_clock() -> Arc<dyn Environment> {
        let clock = ClockSource::Tokio(tokio::time::Instant::now());
        Arc::new(Self { clock, salt: salt(), runtimes: Arc::new(Runtimes::new(true)) })
    }
}

impl Environment for SystemEnvironment {
    fn now(&self) -> Moment {
        match &self.clock {
            ClockSource::Boot => boot_time(),
            ClockSource::Tokio(start) => Moment::ZERO.plus(start.elapsed()),
        }
    }

    #[allow(clippy::disallowed_methods, reason = "this is the seam that all other code uses")]
    fn wall_micros(&self) -> i64 {
        match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_micros()).unwrap_or(i64::MAX),
            Err(before) => -i64::try_from(before.duration().as_micros()).unwrap_or(i64::MAX),
        }
    }

    fn random(&self) -> u64 {
        rand::random::<u64>() ^ self.salt
    }

    fn sleep(&self, duration: Duration) -> BoxFuture {
        Box::pin(Timer::new(duration))
    }

    fn spawn(&self, future: BoxFuture) {
        self.runtimes.spawn(future);
    }

    fn spawn_begun(&self, future: BoxFuture, RuntimeId(runtime): RuntimeId) {
        self.runtimes.spawn_begun(future, runtime);
    }

    fn spawn_beside(&self, future: BoxFuture) {
        self.runtimes.spawn_beside(future);
    }

    fn abandon_standing(&self, which: Option<RuntimeId>, patience: Duration) -> Answer<bool> {
        let runtimes = Arc::clone(&self.runtimes);
        Box::pin(async move { runtimes.abandon_standing(which.map(|RuntimeId(id)| id), patience).await })
    }

    fn end_of_runtime(&self) -> Answer<()> {
        let end = runtimes::end_of_this();
        Box::pin(async move { drop(end.await) })
    }

    fn spawn_for_all(&self, future: BoxFuture) {
        self.runtimes.spawn_for_all(future);
    }

    fn enter(&self) -> bool {
        self.runtimes.enter()
    }

    fn runs_here(&self) -> bool {
        self.runtimes.runs_here()
    }
}

/// Returns a number that no other process has: from the operating system, or else from what tells processes apart.
fn salt() -> u64 {
    use rand::rand_core::TryRng;
    let process = u64::from(std::process::id()).rotate_right(16) ^ boot_time().as_nanos();
    rand::rngs::SysRng.try_next_u64().unwrap_or(process)
}

#[cfg(any(target_os = "linux", target_os = "android", target_os = "fuchsia"))]
fn boot_time() -> Moment {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Moment((time.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64))
}

// Of macOS's clocks that count suspend, `rustix` offers only `CLOCK_MONOTONIC`, which by Apple's manual is affected by adjustments of the time;
// `CLOCK_MONOTONIC_RAW`, which is not, takes unsafe code. Nothing here goes by a clock that we could not try and that may go wrong on a
// machine that never sleeps.
#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "fuchsia")))]
fn boot_time() -> Moment {
    use std::sync::OnceLock;
    use std::time::Instant;
    static START: OnceLock<Instant> = OnceLock::new();
    #[allow(clippy::disallowed_methods, reason = "this is the seam that all other code uses")]
    Moment::ZERO.plus(START.get_or_init(Instant::now).elapsed())
}
