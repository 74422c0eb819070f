//! Locks between threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use ylock::blocking::{Guard, Locks, Ylock};

use super::{BOUND, SHORT, bounded, two_clients};

const THREADS: usize = 4;
const ROUNDS: usize = 50;

/// Counts in two steps between which another thread would be noticed.
fn count(locks: &Locks, count: &AtomicUsize) {
    for _ in 0..ROUNDS {
        let guard = locks.write("counter").wait().unwrap();
        let seen = count.load(Ordering::SeqCst);
        thread::yield_now();
        count.store(seen + 1, Ordering::SeqCst);
        assert!(guard.unlock().unwrap().is_released());
    }
}

#[test]
fn threads_of_one_client_exclude_each_other() {
    bounded(|| {
        let (ylock, counted) = (Ylock::in_memory(), AtomicUsize::new(0));
        let locks = ylock.locks("counters");
        thread::scope(|scope| {
            (0..THREADS).for_each(|_| drop(scope.spawn(|| count(&locks, &counted))));
        });
        assert_eq!(counted.load(Ordering::SeqCst), THREADS * ROUNDS);
    });
}

#[test]
fn threads_of_two_clients_exclude_each_other() {
    bounded(|| {
        let ((one, two), counted) = (two_clients(), AtomicUsize::new(0));
        let (one, two) = (one.locks("counters"), two.locks("counters"));
        thread::scope(|scope| {
            for locks in [&one, &one, &two, &two] {
                scope.spawn(|| count(locks, &counted));
            }
        });
        assert_eq!(counted.load(Ordering::SeqCst), THREADS * ROUNDS);
    });
}

#[test]
fn a_guard_is_given_back_by_another_thread() {
    fn is_send<T: Send>(value: T) -> T {
        value
    }
    bounded(|| {
        let ylock = Ylock::in_memory();
        let lock = ylock.lock("users", "alice");
        let guard = is_send(lock.write().wait().unwrap());
        assert!(thread::spawn(move || guard.unlock()).join().unwrap().unwrap().is_released());
        let guard: Guard = lock.write().within(BOUND).wait().unwrap().unwrap();
        thread::spawn(move || drop(guard)).join().unwrap();
        assert!(lock.write().within(BOUND).wait().unwrap().is_some());
    });
}

#[test]
fn a_drop_gives_back_in_the_background() {
    bounded(|| {
        let (here, there) = two_clients();
        let guard = here.locks("users").write("alice").wait().unwrap();
        assert!(there.locks("users").write("alice").now().wait().unwrap().is_none());
        drop(guard);
        assert!(there.locks("users").write("alice").within(BOUND).wait().unwrap().is_some());
    });
}

#[test]
fn a_panic_in_work_gives_back() {
    bounded(|| {
        let (here, there) = two_clients();
        let lock = here.lock("users", "alice");
        let run =
            || lock.write().run(|_| -> () { std::panic::resume_unwind(Box::new("work that is wrong")) });
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err());
        assert!(there.lock("users", "alice").write().within(BOUND).wait().unwrap().is_some());
    });
}

#[test]
fn a_wait_within_a_time_ends_with_it() {
    bounded(|| {
        let (here, there) = two_clients();
        let _held = here.locks("users").write("alice").wait().unwrap();
        let users = there.locks("users");
        assert!(users.write("alice").within(SHORT).wait().unwrap().is_none());
        assert!(users.read("alice").within(SHORT).wait().unwrap().is_none());
        assert!(
            users.write("alice").within(SHORT).run(|_| panic!("no work without the lock")).unwrap().is_none()
        );
        assert!(users.write("alice").now().run(|_| panic!("no work without the lock")).unwrap().is_none());
    });
}
