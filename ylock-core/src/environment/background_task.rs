//! Background work that goes on when the runtime in which it ran has ended, and when it has
//! panicked.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::shift::{self, Ending, Shift};
use super::{BoxFuture, Environment, Moment};
use crate::foreign::tell;

/// The pause before work that has panicked begins again; doubled each time.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
/// The longest one. Work that has gone on for longer has not panicked each time, and pauses as if
/// it were the first time.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

type Make = Arc<dyn Fn() -> BoxFuture + Send + Sync>;

/// A task that runs at most once at a time. When its runtime ends it begins afresh in another
/// runtime. When it panics it begins afresh after a pause.
#[derive(Debug, Default)]
pub struct BackgroundTask(Arc<AtomicBool>);

impl BackgroundTask {
    /// Returns whether the task runs.
    pub fn is_running(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// Starts the task, unless it runs. `make` makes the work, also each time that the task begins afresh, from what it knows of the
    /// client; it holds the client weakly, and the work ends by itself when the client is gone.
    pub fn start(
        &self,
        environment: &Arc<dyn Environment>,
        make: impl Fn() -> BoxFuture + Send + Sync + 'static,
    ) {
        if self.is_running() || self.0.swap(true, Ordering::AcqRel) {
            return;
        }
        let (running, make) = (Arc::clone(&self.0), Arc::new(make));
        let (environment_of_work, began) = (Arc::downgrade(environment), AtomicU64::new(NOT_YET));
        let work = Work { running, environment: environment_of_work, make, pause: Duration::ZERO, began };
        environment.spawn_for_all(shift::run(work));
    }
}

struct Work {
    running: Arc<AtomicBool>,
    /// Weak: the client's own thread ends when the client is gone, and this may run on it.
    environment: Weak<dyn Environment>,
    make: Make,
    /// The pause before it begins.
    pause: Duration,
    /// The moment at which it has begun, after the pause, in nanoseconds; or [`NOT_YET`].
    began: AtomicU64,
}

/// No moment.
const NOT_YET: u64 = u64::MAX;

impl Shift for Work {
    async fn work(&self) {
        if !self.pause.is_zero() {
            let Some(pause) = self.environment.upgrade().map(|environment| environment.sleep(self.pause))
            else {
                return;
            };
            pause.await;
        }
        if let Some(environment) = self.environment.upgrade() {
            self.began.store(environment.now().as_nanos(), Ordering::Relaxed);
        }
        (self.make)().await;
    }

    fn ended(&self, how: Ending) {
        let again = self.environment.upgrade().and_then(|environment| {
            let pause = self.pause_after(how, environment.now())?;
            Some((environment, pause))
        });
        let Some((environment, pause)) = again else {
            self.running.store(false, Ordering::Release);
            return;
        };
        if how == Ending::Panicked {
            tell!(error, ?pause, "background work of the client panicked; it begins again after a pause");
        }
        environment.spawn_for_all(shift::run(self.again_after(pause)));
    }
}

impl Work {
    /// Returns how long the work pauses before it begins again; nothing if it does not.
    fn pause_after(&self, how: Ending, now: Moment) -> Option<Duration> {
        match how {
            Ending::Interrupted => Some(self.pause),
            Ending::Panicked => match self.began.load(Ordering::Relaxed) {
                // Its pause has panicked, as in a runtime without timers. There is no pause there,
                // and without one it would panic without end: the next use of the client starts it.
                NOT_YET => None,
                began if now.since(Moment::from_nanos(began)) > LONGEST_PAUSE => Some(FIRST_PAUSE),
                _ => Some((self.pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE)),
            },
            Ending::Done | Ending::NeverBegan => None,
        }
    }

    fn again_after(&self, pause: Duration) -> Self {
        let (running, environment) = (Arc::clone(&self.running), Weak::clone(&self.environment));
        Self { running, environment, make: Arc::clone(&self.make), pause, began: AtomicU64::new(NOT_YET) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::sync::mpsc::{Receiver, channel};

    use tokio::runtime::{Builder, Runtime};

    use super::*;
    use crate::environment::SystemEnvironment;

    const SOON: Duration = Duration::from_secs(10);

    fn runtime(name: &str) -> Runtime {
        Builder::new_multi_thread().worker_threads(1).thread_name(name).enable_all().build().unwrap()
    }

    /// Work that never ends. It tells on which thread it begins.
    fn endless() -> (impl Fn() -> BoxFuture + Send + Sync + 'static, Receiver<String>) {
        let (sender, receiver) = channel();
        let make = move || -> BoxFuture {
            sender.send(std::thread::current().name().unwrap_or_default().to_owned()).unwrap();
            Box::pin(std::future::pending())
        };
        (make, receiver)
    }

    #[test]
    fn work_runs_on_a_thread_of_the_clients_own_until_the_client_is_gone() {
        let (environment, task) = (SystemEnvironment::shared(), BackgroundTask::default());
        let callers = runtime("callers");
        let (make, begins) = endless();
        callers.block_on(async { task.start(&environment, make) });
        assert_eq!(begins.recv_timeout(SOON).unwrap(), "ylock");
        drop(callers);
        assert!(task.is_running() && begins.try_recv().is_err());
        drop(environment);
        assert!(begins.recv_timeout(SOON).is_err(), "begun again although the client is gone");
        assert!(!task.is_running());
    }

    /// A runtime of one thread may have a clock of its own, which a test has paused.
    #[test]
    fn work_begins_afresh_when_the_runtime_ends_whose_clock_it_goes_by() {
        let one = || Builder::new_current_thread().enable_all().build().unwrap();
        let (first, second) = (one(), one());
        let (environment, task) =
            (first.block_on(async { SystemEnvironment::on_tokio_clock() }), BackgroundTask::default());
        let (make, begins) = endless();
        first.block_on(async {
            task.start(&environment, make);
            tokio::task::yield_now().await;
        });
        begins.try_recv().expect("it runs in the first one");
        second.block_on(async { assert!(environment.enter()) });
        drop(first);
        second.block_on(async { tokio::task::yield_now().await });
        begins.try_recv().expect("it runs in the second one");
        drop(second);
        assert_eq!(begins.recv_timeout(SOON).unwrap(), "ylock");
    }

    #[test]
    fn work_that_runs_is_not_started_twice() {
        let (environment, task, runtime) =
            (SystemEnvironment::shared(), BackgroundTask::default(), runtime("only"));
        let (make, begins) = endless();
        let make = Arc::new(make);
        runtime.block_on(async {
            for _ in 0..3 {
                let make = Arc::clone(&make);
                task.start(&environment, move || make());
            }
        });
        assert_eq!(begins.recv_timeout(SOON).unwrap(), "ylock");
        assert!(begins.try_recv().is_err());
    }

    /// Returns work that counts how often it has begun.
    fn counting(
        begun: &Arc<AtomicUsize>,
        work: fn() -> BoxFuture,
    ) -> impl Fn() -> BoxFuture + Send + Sync + 'static {
        let begun = Arc::clone(begun);
        move || {
            begun.fetch_add(1, Ordering::SeqCst);
            work()
        }
    }

    fn panics() -> BoxFuture {
        Box::pin(async { std::panic::resume_unwind(Box::new("work that is wrong")) })
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_panics_begins_again_each_time_after_a_longer_pause() {
        let (environment, task) = (SystemEnvironment::on_tokio_clock(), BackgroundTask::default());
        let begun = Arc::new(AtomicUsize::new(0));
        task.start(&environment, counting(&begun, panics));
        environment.sleep(FIRST_PAUSE / 2).await;
        let mut counts = Vec::new();
        for _ in 0..8 {
            counts.push(begun.load(Ordering::SeqCst));
            environment.sleep(FIRST_PAUSE).await;
        }
        assert_eq!(counts, [1, 2, 2, 3, 3, 3, 3, 4]);
        environment.sleep(LONGEST_PAUSE * 60).await;
        assert!((60..70).contains(&begun.load(Ordering::SeqCst)), "{begun:?}");
        assert!(task.is_running());
    }

    /// Work that has gone on for long does not panic each time.
    #[tokio::test(start_paused = true)]
    async fn work_that_panics_after_long_begins_again_after_a_short_pause() {
        let (environment, task) = (SystemEnvironment::on_tokio_clock(), BackgroundTask::default());
        let (begun, time) = (Arc::new(AtomicUsize::new(0)), Arc::clone(&environment));
        let counted = Arc::clone(&begun);
        task.start(&environment, move || {
            counted.fetch_add(1, Ordering::SeqCst);
            let long = time.sleep(LONGEST_PAUSE * 2);
            Box::pin(async {
                long.await;
                std::panic::resume_unwind(Box::new("work that is wrong"))
            })
        });
        environment.sleep((LONGEST_PAUSE * 2 + FIRST_PAUSE * 2) * 20).await;
        assert!((20..=22).contains(&begun.load(Ordering::SeqCst)), "{begun:?}");
    }

    /// Its pauses panic, too.
    #[test]
    fn work_that_panics_where_there_are_no_timers_is_over_and_may_be_started_again() {
        let (environment, task) = (SystemEnvironment::on_tokio_clock(), BackgroundTask::default());
        let begun = Arc::new(AtomicUsize::new(0));
        let runtime = Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            for times in 1..=3 {
                task.start(&environment, counting(&begun, panics));
                while task.is_running() {
                    tokio::task::yield_now().await;
                }
                assert_eq!(begun.load(Ordering::SeqCst), times);
            }
        });
    }

    #[tokio::test]
    async fn work_that_has_ended_may_be_started_again() {
        let (environment, task) = (SystemEnvironment::on_tokio_clock(), BackgroundTask::default());
        let begun = Arc::new(AtomicUsize::new(0));
        for times in 1..=3 {
            task.start(&environment, counting(&begun, || Box::pin(async {})));
            while task.is_running() {
                tokio::task::yield_now().await;
            }
            assert_eq!(begun.load(Ordering::SeqCst), times);
        }
    }
}
