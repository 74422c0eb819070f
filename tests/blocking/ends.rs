//! What becomes of a client whose last value goes.

use std::sync::{Arc, Weak};
use std::thread;

use ylock::engine::Engine;
use ylock::{MemoryStore, blocking};

use super::{BOUND, SHORT, bounded, client_of, two_clients};

#[test]
fn a_client_that_is_dropped_with_its_locks_gives_them_back() {
    bounded(|| {
        let (here, there) = two_clients();
        let users = here.locks("users");
        let held: Vec<_> = (0..20).map(|name| users.write(name).wait().unwrap()).collect();
        drop((here, users, held));
        for name in 0..20 {
            assert!(there.lock("users", name).write().within(BOUND).wait().unwrap().is_some());
        }
    });
}

#[test]
fn a_guard_keeps_its_client() {
    bounded(|| {
        let (here, there) = two_clients();
        let guard = here.lock("users", "alice").write().wait().unwrap();
        drop(here);
        // For longer than a lease: it is still renewed.
        assert_eq!(guard.wait_lost(2 * guard.remaining()).unwrap(), None);
        assert!(there.lock("users", "alice").write().now().wait().unwrap().is_none());
        assert!(guard.unlock().unwrap().is_released());
        assert!(there.lock("users", "alice").write().within(BOUND).wait().unwrap().is_some());
    });
}

#[test]
fn nothing_is_left_of_a_client_without_values() {
    bounded(|| {
        let engine: Arc<dyn Engine> = Arc::new(MemoryStore::new().engine());
        let left: Weak<dyn Engine> = Arc::downgrade(&engine);
        let client = blocking::Ylock::from_async(ylock::Ylock::from_arc(engine));
        let guard = client.lock("users", "alice").write().wait().unwrap();
        drop(client);
        drop(guard);
        while left.strong_count() > 0 {
            thread::sleep(SHORT / 10);
        }
    });
}

#[test]
fn clients_come_and_go_in_their_runtimes() {
    bounded(|| {
        let store = MemoryStore::new();
        for round in 0..50 {
            let client = client_of(&store);
            let guard = client.lock("users", "alice").write().within(BOUND).wait().unwrap();
            assert!(guard.is_some(), "round {round}");
        }
    });
}
