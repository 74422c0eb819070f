//! Owners of synchronous code.

use std::thread;
use std::time::Duration;

use ylock::blocking::Ylock;
use ylock::{ErrorKind, Mode, Owner};
use ylock_testkit::Log;

use super::{SHORT, bounded};

/// Longer than the time after which the log warns.
const LONG: Duration = Duration::from_millis(1500);

#[test]
fn an_owner_that_is_named_is_reentrant_on_every_thread() {
    bounded(|| {
        let owner = Owner::new();
        let users = Ylock::in_memory().locks("users").owned_by(&owner);
        let outer = users.write("alice").wait().unwrap();
        let inner = thread::spawn(move || users.write("alice").wait()).join().unwrap().unwrap();
        assert_eq!((outer.token(), outer.owner()), (inner.token(), owner));
    });
}

#[test]
fn a_scope_makes_an_owner_current_on_its_thread_only() {
    bounded(|| {
        let users = Ylock::in_memory().locks("users");
        let owner = Owner::new();
        owner.sync_scope(|| {
            let _outer = users.write("alice").wait().unwrap();
            assert_eq!(users.write("alice").wait().unwrap().owner(), owner);
            let elsewhere =
                thread::scope(|scope| scope.spawn(|| users.write("alice").now().wait()).join().unwrap());
            assert!(elsewhere.unwrap().is_none());
            assert_eq!(users.read("bob").wait().unwrap().owner(), owner);
            let reading = users.read("carol").wait().unwrap();
            assert_eq!(users.write("carol").wait().unwrap_err().kind(), ErrorKind::WouldDeadlock);
            drop(reading);
        });
        assert_eq!(Owner::current(), None);
        let _stranger = users.write("alice").wait().unwrap();
        assert!(users.write("alice").within(SHORT).wait().unwrap().is_none());
    });
}

#[test]
fn inside_of_work_the_owner_is_current() {
    bounded(|| {
        let ylock = Ylock::in_memory();
        let users = ylock.locks("users");
        let work = |lease: ylock::Lease| {
            assert_eq!(Owner::current(), Some(lease.owner()));
            users.write("alice").run(|inner| inner.token() == lease.token()).unwrap()
        };
        assert!(users.write("alice").run(work).unwrap());
        assert_eq!(Owner::current(), None);
        let both = ylock.multi_lock().write("users", "alice").read("users", "bob");
        let again = |_| ylock.lock("users", "alice").write().wait().map(|guard| guard.mode());
        assert_eq!(both.acquire().run(again).unwrap().unwrap(), Mode::Write);
    });
}

#[test]
fn a_thread_that_waits_for_itself_is_warned_with_both_places_of_the_program() {
    bounded(|| {
        let users = Ylock::in_memory().locks("users");
        let (log, _logging) = Log::of(tracing::Level::WARN);
        let held = users
            .write("alice")
            .run(|_| Owner::new().sync_scope(|| users.write("alice").within(LONG).wait()));
        assert!(held.unwrap().unwrap().is_none());
        let warned = log.lines(&["a task waits for a lock that it has acquired itself"]);
        assert_eq!(warned.len(), 1);
        assert_eq!(warned[0].matches("owners.rs").count(), 2, "{warned:?}");
    });
}
