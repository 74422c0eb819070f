//! Runs one case: skips it, bounds it, and looks at what it left behind.

use std::fmt;
use std::fs::OpenOptions;
use std::future::Future;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::runtime::Builder;
use tokio::task::JoinError;

use super::fixture::Fixture;
use super::harness::Harness;
use super::long::named_part;
use super::pace::stores_are_busy;
use super::registry::Case;

/// Into how many parts the short runs divide the cases that they leave to the long run.
const PARTS: u64 = 20;

/// Runs one case as a test, on a runtime of its own with two worker threads.
///
/// # Panics
/// If the case fails or does not end.
pub fn run_test(harness: impl Harness, case: Case) {
    run(Arc::new(harness), case);
}

fn run(harness: Arc<dyn Harness>, case: Case) {
    if let Some(missing) = case.missing(harness.guarantees()) {
        return note_skip(harness.name(), &case.to_string(), &format!("{missing} is not declared"));
    }
    if is_left_out(&case, &*harness) {
        return note(&format!("LATER {} {case}", harness.name()));
    }
    let _turn = Turn::take(stores_are_busy);
    let runtime =
        Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime can be built");
    let outcome = runtime.block_on(run_case(harness, case));
    // Without waiting: a stuck case may have left tasks behind that never end.
    runtime.shutdown_background();
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}

/// Returns whether a case is left to the long run: the short one asks each harness what it [decides](super::registry::DecidedBy), and one part of all
/// the rest, another one each time.
fn is_left_out(case: &Case, harness: &dyn Harness) -> bool {
    let Some(part) = named_part() else { return false };
    let name = format!("{} {case}", harness.name());
    !harness.role().includes(case.decided_by) && !is_of_part(&name, part)
}

/// Returns whether the case of this name is of this part of the long run.
fn is_of_part(name: &str, part: u64) -> bool {
    // FNV-1a: the same in each build, unlike the hash of the standard library.
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash % PARTS == part % PARTS
}

/// The turn of one case of this process to run.
struct Turn;

struct Running {
    /// How many cases have their turn.
    cases: usize,
    /// When a case that had waited got its turn last.
    waited: Option<Instant>,
}

static RUNNING: Mutex<Running> = Mutex::new(Running { cases: 0, waited: None });
static ENDED: Condvar = Condvar::new();
/// So many cases run at the same time, however busy their stores are: one that waits for a lease
/// costs nothing.
const FEWEST: usize = 2;
/// How often it is looked whether the stores are still busy. Those that wait for that begin one by
/// one: what each of them costs is seen first.
const AGAIN: Duration = Duration::from_millis(200);

impl Turn {
    /// Waits while the stores of this process are busy: of a slow machine fewer cases are asked at
    /// once than of a quick one, instead of more than it can answer in time.
    fn take(are_busy: impl Fn() -> bool) -> Self {
        let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        let is_just_after = |waited: Option<Instant>| waited.is_some_and(|last| last.elapsed() < AGAIN);
        let mut has_waited = false;
        while running.cases >= FEWEST && (are_busy() || is_just_after(running.waited)) {
            let waited = ENDED.wait_timeout(running, AGAIN);
            running = waited.unwrap_or_else(PoisonError::into_inner).0;
            has_waited = true;
        }
        if has_waited {
            running.waited = Some(Instant::now());
        }
        running.cases += 1;
        Self
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        RUNNING.lock().unwrap_or_else(PoisonError::into_inner).cases -= 1;
        ENDED.notify_one();
    }
}

/// Runs one case and returns what went wrong, if anything did.
///
/// # Errors
/// The failure, as a text that names the case.
pub async fn run_case(harness: Arc<dyn Harness>, case: Case) -> Result<(), String> {
    let fixture = Fixture::new(harness, case);
    let mut outcome = bounded(&case, &fixture, (case.body)(fixture.clone())).await;
    if outcome.is_ok() {
        let left = fixture.clone();
        outcome = bounded(&case, &fixture, async move { left.expect_nothing_in_use().await }).await;
    }
    fixture.bury_the_dead();
    outcome
}

async fn bounded<F>(case: &Case, fixture: &Fixture, body: F) -> Result<(), String>
where
    F: Future<Output = ()> + Send + 'static,
{
    let task = tokio::spawn(body);
    let abort = task.abort_handle();
    match fixture.unless_stuck(task).await {
        Some(Ok(())) => Ok(()),
        Some(Err(error)) => Err(format!("{case}: {}", message(error))),
        None => {
            abort.abort();
            Err(format!("{case}: stuck, it makes no progress"))
        }
    }
}

fn message(error: JoinError) -> String {
    match error.try_into_panic() {
        Ok(panic) => match (panic.downcast_ref::<String>(), panic.downcast_ref::<&str>()) {
            (Some(text), _) => text.clone(),
            (None, Some(text)) => (*text).to_owned(),
            (None, None) => "panicked".to_owned(),
        },
        Err(error) => error.to_string(),
    }
}

/// Notes that a case or a test of an engine is left out, and why: the reader of the results of the run must see it.
///
/// # Panics
/// If the list cannot be written.
pub fn note_skip(engine: &str, case: &str, why: &str) {
    note(&format!("SKIPPED {engine} {case}: {why}"));
}

/// Writes a line to the list of what was left out.
fn note(line: &str) {
    println!("{line}");
    let Some(path) = std::env::var_os("YLOCK_SKIPS_FILE") else { return };
    append(Path::new(&path), line).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

fn append(path: &Path, line: &str) -> io::Result<()> {
    // One write call: several test processes append to the same file.
    OpenOptions::new().create(true).append(true).open(path)?.write_all(format!("{line}\n").as_bytes())
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}::{}", self.module, self.name)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::registry::{Body, DecidedBy};
    use crate::{MemoryHarness, Need};

    fn case(body: Body) -> Case {
        Case { module: "module", name: "name", decided_by: DecidedBy::Store, needs: &[Need::Fencing], body }
    }

    #[test]
    #[should_panic(expected = "module::name: it failed")]
    fn the_failure_of_a_case_names_it() {
        let fails = case(|_| Box::pin(async { std::panic::resume_unwind(Box::new("it failed")) }));
        run_test(MemoryHarness::new(), fails);
    }

    #[test]
    #[should_panic(expected = "module::name: stuck")]
    fn a_case_that_is_stuck_dies() {
        let harness = MemoryHarness::new().with_bound(Duration::from_millis(10));
        run_test(harness, case(|_| Box::pin(std::future::pending())));
    }

    #[test]
    fn each_case_is_of_one_part_and_the_parts_are_about_equal() {
        let names: Vec<_> = (0..2_000).map(|number| format!("redis module::case_{number}")).collect();
        let size = |part| names.iter().filter(|name| is_of_part(name, part)).count();
        let sizes: Vec<_> = (0..PARTS).map(size).collect();
        assert_eq!(sizes.iter().sum::<usize>(), names.len());
        assert!(sizes.iter().all(|size| (50..150).contains(size)), "{sizes:?}");
        assert_eq!(size(PARTS + 3), sizes[3]);
    }

    #[test]
    fn few_cases_begin_while_the_stores_are_busy() {
        let inside = AtomicUsize::new(0);
        std::thread::scope(|threads| {
            for _ in 0..8 {
                threads.spawn(|| {
                    // Other tests of this process have their turns as well.
                    let _turn = Turn::take(|| true);
                    assert!(inside.fetch_add(1, Ordering::SeqCst) < FEWEST, "too many have their turn");
                    std::thread::yield_now();
                    inside.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
    }

    #[test]
    fn all_cases_begin_while_the_stores_are_not_busy() {
        let turns: Vec<_> = (0..2 * FEWEST).map(|_| Turn::take(|| false)).collect();
        assert_eq!(turns.len(), 2 * FEWEST);
    }

    #[test]
    #[should_panic(expected = "forgets every key")]
    fn a_case_that_leaves_something_behind_fails() {
        let leaves =
            case(|fixture| Box::pin(async move { std::mem::forget(fixture.client().await.write().await) }));
        run_test(MemoryHarness::new(), leaves);
    }

    #[test]
    fn each_line_of_the_list_of_skipped_cases_is_appended() {
        let path = std::env::temp_dir().join(format!("ylock-skips-{:016x}", rand::random::<u64>()));
        append(&path, "one").unwrap();
        append(&path, "two").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\ntwo\n");
        std::fs::remove_file(path).unwrap();
    }
}
