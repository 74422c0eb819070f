//! Quiet time: the time that bounds of tests are counted in. It passes like the clock on a quiet machine, and more slowly where this process waits
//! for a core, or its store answers late.
//!
//! A bound says that something makes no progress. On a machine that gives a test a third of a core, progress takes three times as long, so a bound
//! has to as well. How slow the machine and the store are is measured all along, by a thread of its own.

use std::collections::HashMap;
use std::fs;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// How often the pace is measured: by so much quiet time may be behind.
const TICK: Duration = Duration::from_millis(50);
/// For how many nanoseconds a process runs that does nearly nothing within a tick.
const NEARLY_NOTHING: u64 = 100_000;
/// The slowest that a store makes quiet time pass: an engine that is slow by its own fault must not stretch the bound that would show it much further.
const SLOWEST_STORE: f64 = 4.0;
/// A trip that takes so many times as long as usual has no answer any more: its process was killed, as far as a test can do that.
const GIVEN_UP: f64 = 20.0;
/// The share of one tick in the mean of all trips: after a second little is left of what was
/// before.
const SHARE_OF_A_TICK: f64 = 0.1;
/// Stores that take so many times as long as usual for an answer, on the average, have enough to
/// do: a case more would only make all of them late.
#[cfg(feature = "suite")]
const BUSY: f64 = 0.5;
/// The slowest that quiet time passes: a bound ends at last, however little this process is given.
const SLOWEST: f64 = 20.0;

/// The requests of this process that its stores have not answered, and the slowest answer since the last tick.
static TRIPS: OnceLock<Mutex<Trips>> = OnceLock::new();

/// Returns the quiet time that has passed since the first call in this process: the difference of two is what something took, or a little less.
pub fn quiet_time() -> Duration {
    static PASSED: OnceLock<&'static AtomicU64> = OnceLock::new();
    let micros = PASSED.get_or_init(|| {
        let passed: &'static AtomicU64 = Box::leak(Box::default());
        thread::Builder::new().name("quiet time".into()).spawn(|| tick(passed)).expect("a thread");
        passed
    });
    Duration::from_micros(micros.load(Ordering::Relaxed))
}

fn tick(passed: &AtomicU64) {
    let mut before = threads();
    loop {
        let began = Instant::now();
        thread::sleep(TICK);
        // A process that was stopped, or that no core was left for, has not lived through more than a tick.
        let lived = began.elapsed().min(TICK * 2);
        let after = threads();
        let slowness = slowness_between(&before, &after).max(trips().lock().tick());
        before = after;
        let micros = lived.div_f64(slowness.clamp(1.0, SLOWEST)).as_micros();
        passed.fetch_add(u64::try_from(micros).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

/// Returns whether the stores of this process answer so late that no more should be asked of them
/// at the same time.
#[cfg(feature = "suite")]
pub(crate) fn stores_are_busy() -> bool {
    trips().lock().mean > BUSY
}

fn trips() -> &'static Mutex<Trips> {
    TRIPS.get_or_init(Mutex::default)
}

/// Of each thread of this process, how long it has run and how long it has waited for a core, in nanoseconds.
type Threads = HashMap<String, [u64; 2]>;

/// Returns what Linux says of the threads. Elsewhere nothing is known, and quiet time is that of the clock.
fn threads() -> Threads {
    let folders = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let times = folders.filter_map(|folder| {
        let text = fs::read_to_string(folder.path().join("schedstat")).ok()?;
        let mut numbers = text.split_whitespace().map_while(|word| word.parse().ok());
        Some((folder.file_name().to_string_lossy().into_owned(), [numbers.next()?, numbers.next()?]))
    });
    times.collect()
}

/// Returns how many times as long as on cores of its own this process took for what it did in between.
fn slowness_between(before: &Threads, after: &Threads) -> f64 {
    let (mut ran, mut waited) = (0, 0);
    for (thread, [run, wait]) in after {
        let [run_before, wait_before] = before.get(thread).copied().unwrap_or_default();
        ran += run.saturating_sub(run_before);
        waited += wait.saturating_sub(wait_before);
    }
    // Where nearly nothing was done, the waits of some wake-ups say nothing.
    if ran < NEARLY_NOTHING { 1.0 } else { (ran + waited) as f64 / ran as f64 }
}

/// A request to a store that is on its way: from [`begin_trip`] until it is dropped.
#[derive(Debug)]
pub(crate) struct Trip(u64);

/// Notes that a request is sent, whose answer is expected after this long at most, on a busy machine.
pub(crate) fn begin_trip(usual: Duration) -> Trip {
    let trips = &mut *trips().lock();
    trips.next += 1;
    trips.under_way.insert(trips.next, (Instant::now(), usual));
    Trip(trips.next)
}

impl Drop for Trip {
    fn drop(&mut self) {
        let trips = &mut *trips().lock();
        if let Some((began, usual)) = trips.under_way.remove(&self.0) {
            trips.ended.push(slowness(began, usual));
        }
    }
}

#[derive(Debug, Default)]
struct Trips {
    next: u64,
    under_way: HashMap<u64, (Instant, Duration)>,
    /// How many times as long as usual each took that ended since the last tick.
    ended: Vec<f64>,
    /// The mean of all trips, of which those of the last second count for the most.
    mean: f64,
}

impl Trips {
    /// Returns how many times as long as usual the slowest trip took since the last tick, or takes
    /// now.
    fn tick(&mut self) -> f64 {
        self.under_way.retain(|_, (began, usual)| slowness(*began, *usual) < GIVEN_UP);
        let mut slowness: Vec<_> =
            self.under_way.values().map(|(began, usual)| slowness(*began, *usual)).collect();
        // A request that was just sent says nothing yet.
        slowness.retain(|slowness| *slowness > self.mean);
        slowness.append(&mut self.ended);
        let mean = slowness.iter().sum::<f64>() / slowness.len().max(1) as f64;
        self.mean += (mean - self.mean) * SHARE_OF_A_TICK;
        slowness.into_iter().fold(0.0, f64::max).min(SLOWEST_STORE)
    }
}

fn slowness(began: Instant, usual: Duration) -> f64 {
    began.elapsed().as_secs_f64() / usual.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_passes_more_slowly_while_a_store_is_slow() {
        let mut trips = Trips::default();
        assert!(trips.tick() < 1.0);
        let began = Instant::now().checked_sub(Duration::from_secs(3)).unwrap();
        trips.under_way.insert(1, (began, Duration::from_secs(1)));
        assert!((3.0..4.0).contains(&trips.tick()), "an answer that has not come yet");
        trips.under_way.clear();
        trips.ended = vec![3.5, 0.5];
        assert!((trips.tick() - 3.5).abs() < 0.1, "one that came late");
        trips.under_way.insert(2, (began, Duration::from_millis(200)));
        assert!((trips.tick() - SLOWEST_STORE).abs() < 0.1, "the engine may be what is slow");
        trips.under_way.insert(2, (began, Duration::from_millis(100)));
        assert!(trips.tick() < 1.0, "one whose process was killed");
        assert!(trips.tick() < 1.0, "none since");
    }

    #[cfg(feature = "suite")]
    #[test]
    fn a_store_is_busy_while_most_answers_are_late() {
        let after = |slowness: &[f64]| {
            let mut trips = Trips::default();
            for _ in 0..20 {
                trips.ended = slowness.to_vec();
                trips.tick();
            }
            trips
        };
        assert!(after(&[0.1, 0.1, 0.1, 0.1, 1.5]).mean < BUSY, "one client alone is cut off");
        let mut late = after(&[0.6, 0.9]);
        assert!(late.mean > BUSY);
        for _ in 0..20 {
            late.tick();
        }
        assert!(late.mean < BUSY, "no trip since");
    }

    #[test]
    fn a_process_that_waits_for_cores_is_slow() {
        let times = |of: &[(&str, u64, u64)]| -> Threads {
            let millis = |ms: u64| ms * 1_000_000;
            of.iter()
                .map(|(thread, ran, waited)| ((*thread).into(), [millis(*ran), millis(*waited)]))
                .collect()
        };
        let before = times(&[("1", 10, 500), ("ended", 90, 9_000)]);
        assert_eq!(slowness_between(&before, &times(&[("1", 20, 500)])), 1.0, "it had all that it asked for");
        assert_eq!(slowness_between(&before, &times(&[("1", 20, 510), ("new", 10, 30)])), 3.0);
        assert_eq!(slowness_between(&before, &before), 1.0, "it slept");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_system_says_how_long_threads_have_run() {
        assert!(threads().values().any(|[ran, _]| *ran > 0));
    }

    #[test]
    fn quiet_time_passes() {
        let began = quiet_time();
        while quiet_time() == began {
            thread::sleep(TICK / 10);
        }
    }
}
