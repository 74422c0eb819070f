//! One call of each kind, by two clients of one store.

use std::thread;
use std::time::Duration;

use ylock::blocking::{Ylock, connect, connect_with};
use ylock::{Config, Error, ErrorKind, JobOutcome, Period};

use super::{BOUND, SHORT, bounded, client_of, two_clients};

#[test]
fn a_url_and_a_configuration_are_connected_to() {
    bounded(|| {
        let ylock = connect("memory://?lease=3s&client=old%20part").unwrap();
        assert_eq!((ylock.options().lease().as_secs(), ylock.name().as_str()), (3, "old part"));
        assert_eq!(connect("memry://").unwrap_err().kind(), ErrorKind::Config);
        let ylock = connect_with(&Config::new("memory://?max_wait=1s").unwrap()).unwrap();
        let _held = ylock.lock("users", "alice").write().wait().unwrap();
        assert_eq!(ylock.lock("users", "alice").write().wait().unwrap_err().kind(), ErrorKind::TimedOut);
    });
}

#[test]
fn readers_share_and_a_writer_becomes_one() {
    bounded(|| {
        let (here, there) = two_clients();
        let (here, there) = (here.locks("prices"), there.locks("prices"));
        let (one, two) =
            (here.read("2026").wait().unwrap(), there.read("2026").now().wait().unwrap().unwrap());
        assert!(here.write("2026").now().wait().unwrap().is_none());
        drop((one, two));
        let writing = here.write("2026").wait().unwrap();
        assert!(there.read("2026").now().wait().unwrap().is_none());
        let reading = writing.downgrade().unwrap();
        assert!(there.read("2026").within(BOUND).wait().unwrap().is_some());
        assert!(reading.unlock().unwrap().is_released());
        assert_eq!(there.read("2026").run(|lease| lease.mode()).unwrap(), ylock::Mode::Read);
    });
}

#[test]
fn holders_are_shown_and_listed() {
    bounded(|| {
        let (here, there) = two_clients();
        let here = here.with_name("here").unwrap();
        let users = here.locks("users");
        let _held = ["alice", "bob", "carol"].map(|name| users.write(name).wait().unwrap());
        let _other = here.lock("orders", "4711").write().wait().unwrap();
        assert_eq!(there.inspect("users", "alice").unwrap().holders[0].client.as_str(), "here");
        let listed: Result<Vec<_>, Error> = there.list().of_group("users").collect();
        let mut names: Vec<_> = listed.unwrap().iter().map(|lock| lock.key.name().to_owned()).collect();
        names.sort();
        assert_eq!(names, ["alice", "bob", "carol"]);
        assert_eq!(there.list().count(), 4);
        // An error is the last that is listed.
        assert_eq!(there.list().of_group("").map(|lock| lock.is_err()).collect::<Vec<_>>(), [true]);
    });
}

#[test]
fn sets_are_all_or_none() {
    bounded(|| {
        let (here, there) = two_clients();
        let both = |of: &Ylock| of.multi_lock().write("users", "alice").write("users", "bob");
        let held = both(&here).acquire().wait().unwrap();
        assert!(both(&there).acquire().now().wait().unwrap().is_none());
        assert!(both(&there).acquire().within(SHORT).wait().unwrap().is_none());
        let mut guards = held.into_guards().into_iter();
        assert_eq!(guards.next().unwrap().key().name(), "alice");
        drop(guards);
        assert!(
            both(&there).acquire().within(BOUND).wait().unwrap().unwrap().unlock().unwrap().is_released()
        );
    });
}

#[test]
fn a_set_grows_and_gives_way() {
    bounded(|| {
        let (here, there) = two_clients();
        let held = there.lock("accounts", "alice").write().wait().unwrap();
        let (mut held, mut runs) = (Some(held), 0);
        let grown = here.two_phase_locking(|taking| {
            runs += 1;
            taking.write("accounts", "bob")?;
            // Before the one that is held: it is tried, and the closure gives way.
            let asked = taking.write("accounts", "alice");
            drop(held.take());
            asked?;
            Ok::<_, Error>(runs)
        });
        assert_eq!(grown.unwrap(), 2);
    });
}

#[test]
fn permits_are_as_many_as_there_are() {
    bounded(|| {
        let (here, there) = two_clients();
        let of = |client: &Ylock| client.locks("reports").semaphore("render", 2);
        let (one, _two) = (of(&here).acquire().wait().unwrap(), of(&there).acquire().wait().unwrap());
        assert!(of(&there).acquire().now().wait().unwrap().is_none());
        assert!(of(&there).acquire().within(SHORT).wait().unwrap().is_none());
        assert!(one.unlock().unwrap().is_released());
        assert!(of(&here).acquire().run(|permit| permit.is_valid()).unwrap());
    });
}

#[test]
fn one_candidate_leads() {
    bounded(|| {
        let (here, there) = two_clients();
        let of = |client: &Ylock| client.locks("elections").election("reminders");
        let first = of(&here).campaign().wait().unwrap();
        assert_eq!(of(&there).leader().unwrap().unwrap().term(), first.term());
        thread::scope(|scope| {
            let second = scope.spawn(|| of(&there).campaign().wait());
            assert!(first.is_leader() && !second.is_finished());
            let term = first.term();
            assert!(first.resign().unwrap().is_released());
            assert!(second.join().unwrap().unwrap().term() > term);
        });
        assert!(of(&here).campaign().run(|lease| lease.is_valid()).unwrap());
    });
}

#[test]
fn a_job_is_run_once_per_period() {
    bounded(|| {
        let (here, there) = two_clients();
        let yearly = Period::of(Duration::from_secs(365 * 24 * 3600)).until_done();
        let failed = here.locks("jobs").once_per("reminders", yearly, |_| Err::<(), _>("no network"));
        assert_eq!(failed.unwrap(), JobOutcome::Ran(Err("no network")));
        let again = there.lock("jobs", "reminders").once_per(yearly, |job| drop(job.run().clone()));
        assert_eq!(again.unwrap(), JobOutcome::Ran(()));
        let third = here.locks("jobs").once_per("reminders", yearly, |_| -> () { panic!("run before") });
        assert!(third.unwrap().other().unwrap().is_done);
    });
}

#[test]
fn a_closed_client_ends_waits_and_refuses() {
    bounded(|| {
        let store = ylock::MemoryStore::new();
        let (here, there) = (client_of(&store), client_of(&store));
        let held = here.lock("users", "alice").write().wait().unwrap();
        thread::scope(|scope| {
            let waiting = scope.spawn(|| there.lock("users", "alice").write().wait());
            while here.inspect("users", "alice").unwrap().queue.is_empty() {
                thread::yield_now();
            }
            there.close().unwrap();
            assert_eq!(waiting.join().unwrap().unwrap_err().kind(), ErrorKind::Closed);
        });
        assert_eq!(there.lock("users", "bob").write().wait().unwrap_err().kind(), ErrorKind::Closed);
        here.close().unwrap();
        here.close().unwrap();
        assert!(!held.is_valid() && store.is_empty());
    });
}
