//! What a holder is told when its lock is lost.

use std::thread;

use ylock::blocking::Ylock;
use ylock::{ErrorKind, LossReason, Options};

use super::{BOUND, SHORT, bounded, two_clients};

#[test]
fn a_guard_waits_for_the_loss() {
    bounded(|| {
        let (here, there) = two_clients();
        let guard = here.locks("users").write("alice").wait().unwrap();
        assert_eq!(guard.wait_lost(SHORT).unwrap(), None);
        let told = thread::scope(|scope| {
            let waiting = scope.spawn(|| guard.wait_lost(BOUND));
            assert_eq!(there.revoke("users", "alice").unwrap(), 1);
            waiting.join().unwrap().unwrap()
        });
        assert_eq!(told, guard.loss());
        assert!(told.is_some() && !guard.is_valid());
        assert!(!guard.unlock().unwrap().is_released());
    });
}

#[test]
fn work_ends_and_is_told_of_the_loss() {
    bounded(|| {
        let (here, there) = two_clients();
        let (mut checked, mut ended) = (None, false);
        let ran = here.lock("users", "alice").write().run(|lease| {
            assert!(lease.check().is_ok());
            there.revoke("users", "alice").unwrap();
            while lease.is_valid() {
                thread::sleep(SHORT / 10);
            }
            (checked, ended) = (lease.check().err(), true);
        });
        assert_eq!(checked.unwrap().kind(), ErrorKind::Lost);
        assert_eq!(ran.unwrap_err().kind(), ErrorKind::Lost);
        assert!(ended, "work is not dropped");
        assert!(there.lock("users", "alice").write().within(BOUND).wait().unwrap().is_some());
    });
}

#[test]
fn work_that_takes_too_long_is_told_and_has_kept_the_lock_for_no_longer() {
    bounded(|| {
        let (here, there) = two_clients();
        let lock = here.lock("users", "alice").with_options(Options::default().with_max_hold(SHORT));
        let guard = lock.write().wait().unwrap();
        assert_eq!(guard.wait_lost(BOUND).unwrap(), Some(LossReason::HeldTooLong));
        let ran = lock.write().run(|lease| {
            while lease.is_valid() {
                thread::sleep(SHORT / 10);
            }
            there.lock("users", "alice").write().within(BOUND).wait().unwrap().is_some()
        });
        assert_eq!(ran.unwrap_err().kind(), ErrorKind::Lost);
        assert!(!guard.unlock().unwrap().is_released());
    });
}

/// Revokes a lock and waits until the holder here sees it.
fn take_away(from: &Ylock, group: &str, is_valid: impl Fn() -> bool) {
    let count = from.revoke(group, "name").unwrap() + from.revoke_semaphore(group, "name").unwrap();
    assert!(count > 0);
    while is_valid() {
        thread::sleep(SHORT / 10);
    }
}

#[test]
fn work_of_sets_permits_leaders_and_jobs_is_told_too() {
    bounded(|| {
        let (here, there) = two_clients();
        let set = here.multi_lock().write("sets", "name").write("sets", "other");
        let ran = set.acquire().run(|leases| take_away(&there, "sets", || leases.is_valid()));
        assert_eq!(ran.unwrap_err().kind(), ErrorKind::Lost);
        let semaphore = here.locks("permits").semaphore("name", 2);
        let ran = semaphore.acquire().run(|permit| take_away(&there, "permits", || permit.is_valid()));
        assert_eq!(ran.unwrap_err().kind(), ErrorKind::Lost);
        let election = here.locks("elections").election("name");
        let ran = election.campaign().run(|lease| take_away(&there, "elections", || lease.is_valid()));
        assert_eq!(ran.unwrap_err().kind(), ErrorKind::Lost);
        let job = here.lock("jobs", "name");
        let ran = job.once_per(BOUND, |job| take_away(&there, "jobs", || job.is_valid()));
        assert_eq!(ran.unwrap_err().kind(), ErrorKind::Lost);
        let grown = here.two_phase_locking(|taking| {
            let lease = taking.write("growing", "name")?;
            take_away(&there, "growing", || lease.is_valid());
            Ok::<_, ylock::Error>(())
        });
        assert_eq!(grown.unwrap_err().kind(), ErrorKind::Lost);
    });
}

/// The closure gives way, and loses a lock before it ends: it runs again, and what it returned then counts for nothing.
#[test]
fn what_work_returned_without_its_locks_does_not_count() {
    bounded(|| {
        let (here, there) = two_clients();
        let mut held = Some(there.lock("accounts", "alice").write().wait().unwrap());
        let mut runs = 0;
        let grown = here.two_phase_locking(|taking| {
            runs += 1;
            let bob = taking.write("accounts", "bob")?;
            // Before bob, and not free. The closure drops the error.
            let has_alice = taking.write("accounts", "alice").is_ok();
            if let Some(held) = held.take() {
                there.revoke("accounts", "bob").unwrap();
                while bob.is_valid() {
                    thread::sleep(SHORT / 10);
                }
                assert!(!has_alice && held.unlock().unwrap().is_released());
            }
            Ok::<_, ylock::Error>((runs, has_alice, bob.is_valid()))
        });
        assert_eq!(grown.unwrap(), (2, true, true));
        assert_eq!(runs, 2);
    });
}

#[test]
fn permits_and_leaders_wait_for_the_loss() {
    bounded(|| {
        let (here, there) = two_clients();
        let permit = here.locks("permits").semaphore("name", 2).acquire().wait().unwrap();
        let leadership = here.locks("elections").election("name").campaign().wait().unwrap();
        let set = here.multi_lock().write("sets", "name").acquire().wait().unwrap();
        there.revoke_semaphore("permits", "name").unwrap();
        for group in ["elections", "sets"] {
            there.revoke(group, "name").unwrap();
        }
        assert!(permit.wait_lost(BOUND).unwrap().is_some());
        assert!(leadership.wait_lost(BOUND).unwrap().is_some());
        let (key, _) = set.wait_lost(BOUND).unwrap().unwrap();
        assert_eq!(key.group(), "sets");
        assert!(!leadership.is_leader() && !set.is_valid() && !permit.is_valid());
    });
}
