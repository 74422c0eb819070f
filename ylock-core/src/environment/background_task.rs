//! Background work that goes on when the runtime in which it ran has ended.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use super::shift::{self, Ending, Shift};
use super::{BoxFuture, Environment};

type Make = Arc<dyn Fn() -> BoxFuture + Send + Sync>;

/// A task that runs at most once at a time. When its runtime ends it begins afresh in another runtime.
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
        let work = Work { running, environment: Arc::downgrade(environment), make };
        environment.spawn_for_all(shift::run(work));
    }
}

#[derive(Clone)]
struct Work {
    running: Arc<AtomicBool>,
    /// Weak: the client's own thread ends when the client is gone, and this may run on it.
    environment: Weak<dyn Environment>,
    make: Make,
}

impl Shift for Work {
    async fn work(&self) {
        (self.make)().await;
    }

    fn ended(&self, how: Ending) {
        match self.environment.upgrade().filter(|_| how == Ending::Interrupted) {
            Some(environment) => environment.spawn_for_all(shift::run(self.clone())),
            None => self.running.store(false, Ordering::Release),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::sync::mpsc::{Receiver, channel};
    use std::time::Duration;

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

    #[tokio::test]
    async fn work_that_panics_is_over_and_may_be_started_again() {
        let (environment, task) = (SystemEnvironment::on_tokio_clock(), BackgroundTask::default());
        let begun = Arc::new(AtomicUsize::new(0));
        for times in 1..=3 {
            task.start(
                &environment,
                counting(&begun, || {
                    Box::pin(async { std::panic::resume_unwind(Box::new("work that is wrong")) })
                }),
            );
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            assert_eq!((begun.load(Ordering::SeqCst), task.is_running()), (times, false));
        }
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
