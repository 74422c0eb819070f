//! The end of a validity under every order of the threads that look at it, renew it and end it. This is the keeper's own file, over the
//! atomics of loom.

#[path = "../../../ylock-core/src/keeper/validity/until.rs"]
mod until;

use std::time::Duration;

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;
use until::Until;
use ylock_core::environment::Moment;

const FIRST_END: u64 = 10;
const NEXT_END: u64 = 20;

/// A validity, and a clock that another thread puts forward.
struct Scene {
    until: Until,
    clock: AtomicU64,
}

impl Scene {
    fn new() -> Arc<Self> {
        Arc::new(Self { until: Until::new(Moment::from_nanos(FIRST_END)), clock: AtomicU64::new(5) })
    }

    fn is_valid(&self) -> bool {
        self.until.remaining(|| self.now()) > Duration::ZERO
    }

    fn extend(&self) -> bool {
        self.until.extend(Moment::from_nanos(NEXT_END), || self.now())
    }

    fn now(&self) -> Moment {
        Moment::from_nanos(self.clock.load(Ordering::SeqCst))
    }

    /// The first end has passed, the next one has not.
    fn pass_first_end(&self) {
        self.clock.store(FIRST_END + 5, Ordering::SeqCst);
    }
}

/// Runs work in a thread of its own.
fn beside<T: 'static>(scene: &Arc<Scene>, work: fn(&Scene) -> T) -> thread::JoinHandle<T> {
    let scene = Arc::clone(scene);
    thread::spawn(move || work(&scene))
}

#[test]
fn a_holder_that_was_told_that_its_lease_is_over_is_not_told_later_that_it_is_not() {
    loom::model(|| {
        let scene = Scene::new();
        let clock = beside(&scene, Scene::pass_first_end);
        let renewal = beside(&scene, Scene::extend);
        let (first, second) = (scene.is_valid(), scene.is_valid());
        clock.join().unwrap();
        let renewed = renewal.join().unwrap();
        let last = scene.is_valid();
        assert!(first || !second, "it was valid again");
        assert!(second || !last, "it was valid again");
        assert_eq!(
            last, renewed,
            "a renewal that was too late prolongs nothing, and no other one is forgotten"
        );
    });
}

#[test]
fn what_was_given_back_is_not_renewed() {
    loom::model(|| {
        let scene = Scene::new();
        let renewal = beside(&scene, Scene::extend);
        let clock = beside(&scene, Scene::pass_first_end);
        scene.until.finish();
        assert!(!scene.is_valid() && scene.until.get() == Moment::ZERO);
        renewal.join().unwrap();
        clock.join().unwrap();
        assert!(!scene.is_valid() && !scene.extend());
    });
}

#[test]
fn a_lapse_and_a_release_at_once_end_the_validity_for_good() {
    loom::model(|| {
        let scene = Scene::new();
        scene.pass_first_end();
        let release = beside(&scene, |scene| scene.until.finish());
        let looked = beside(&scene, Scene::is_valid);
        assert!(!scene.extend());
        assert!(!looked.join().unwrap());
        let was_over = scene.until.is_over();
        release.join().unwrap();
        assert!(!scene.is_valid() && !scene.extend());
        assert!(!scene.until.is_over() || was_over, "what was given back has not lapsed later");
    });
}
