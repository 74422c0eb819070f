//! A limit on how many releases are on their way at once, for a store that very many make so slow that it answers none of them in time.
//!
//! A cluster of Cassandra answers so many requests a second and no more. Ten thousand releases that are sent together wait there for each
//! other until their time limits have passed, are sent again, and wait longer; the renewals between them too. So a client sends a few
//! at once. The limit follows what the store can do, as the window of a TCP connection does: it grows while releases are
//! answered, and halves when one fails or is slow.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::{Handle, Id};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::error::Result;

/// The limit falls to this part of the first limit: a store that is away answers none, and must not be slow when it is back.
const LEAST_PART: usize = 4;
/// A release is slow that takes longer than this. It goes on, but not in its place: while one part of the store does not answer, releases
/// to the other parts must get through.
pub(super) const SLOW: Duration = Duration::from_secs(2);

/// The throttles of one client, one for each runtime: releases in a runtime that is not driven keep their places, and must not keep
/// those of other runtimes waiting.
#[derive(Debug)]
pub(super) struct Throttles {
    first: usize,
    all: Mutex<HashMap<Option<Id>, Weak<Throttle>>>,
}

/// The limit for the releases in one runtime; see the [module](self).
#[derive(Debug)]
pub(super) struct Throttle {
    /// Fair: the releases go in the order in which they ask.
    places: Semaphore,
    window: Mutex<Window>,
    /// The number of releases that the store has answered, in a place or without one, and one more. Not what an engine knows
    /// without asking: this says whether the store is silent. The limit goes by the successes of the [`Window`].
    store_answers: AtomicU64,
    /// The number of answers of the store at which none had come for as long as an attempt may take; 0 if that was not so yet.
    silent_at: AtomicU64,
}

#[derive(Debug)]
struct Window {
    limit: usize,
    least: usize,
    /// The number of releases that have succeeded in a place since the limit changed, while no place was empty.
    successes: usize,
    /// The number of places that are taken but will not be taken again, because the limit has fallen.
    surplus: usize,
    /// The number of times that the limit has fallen.
    falls: u64,
}

/// A place among the releases that are on their way.
#[derive(Debug)]
pub(super) struct Place<'a> {
    throttle: &'a Throttle,
    permit: Option<SemaphorePermit<'a>>,
    /// The number of times that the limit had fallen when the place was taken.
    falls: u64,
}

impl Throttles {
    pub(super) fn new(first: usize) -> Self {
        Self { first, all: Mutex::default() }
    }

    /// Returns the throttle for the releases in the caller's runtime.
    pub(super) fn of_this_runtime(&self) -> Arc<Throttle> {
        let runtime = Handle::try_current().ok().map(|handle| handle.id());
        let mut all = self.all.lock();
        if let Some(throttle) = all.get(&runtime).and_then(Weak::upgrade) {
            return throttle;
        }
        all.retain(|_, throttle| throttle.strong_count() > 0);
        let throttle = Arc::new(Throttle::new(self.first));
        all.insert(runtime, Arc::downgrade(&throttle));
        throttle
    }
}

impl Throttle {
    fn new(first: usize) -> Self {
        let first = first.max(1);
        let least = (first / LEAST_PART).max(1);
        let window = Window { limit: first, least, successes: 0, surplus: 0, falls: 0 };
        let (store_answers, silent_at) = (AtomicU64::new(1), AtomicU64::new(0));
        Self { places: Semaphore::new(first), window: Mutex::new(window), store_answers, silent_at }
    }

    /// Returns a place, if one is free and no other release waits for it.
    pub(super) fn try_enter(&self) -> Option<Place<'_>> {
        self.places.try_acquire().ok().map(|permit| self.place(Some(permit)))
    }

    /// Waits for a place, in the order of the calls.
    pub(super) async fn enter(&self) -> Place<'_> {
        // The semaphore is not closed. If it were, a release without a place would be better than none.
        let permit = self.places.acquire().await.ok();
        self.place(permit)
    }

    fn place<'a>(&'a self, permit: Option<SemaphorePermit<'a>>) -> Place<'a> {
        Place { throttle: self, permit, falls: self.window.lock().falls }
    }

    /// Notes that the store has answered a release.
    pub(super) fn store_answered(&self) {
        self.store_answers.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how many releases the store has answered by now.
    pub(super) fn store_answers(&self) -> u64 {
        self.store_answers.load(Ordering::Relaxed)
    }

    /// Notes that as long as an attempt may take has passed since the store had answered so many.
    pub(super) fn time_passed_since(&self, store_answers: u64) {
        if store_answers == self.store_answers() {
            self.silent_at.store(store_answers, Ordering::Relaxed);
        }
    }

    /// Returns whether no release was answered for as long as an attempt may take, and none since.
    pub(super) fn is_silent(&self) -> bool {
        self.silent_at.load(Ordering::Relaxed) == self.store_answers()
    }

    /// Notes that a release has succeeded in a place: the limit grows by one for as many successes as it is, if all places are taken.
    fn succeeded(&self) {
        if self.places.available_permits() > 0 {
            return;
        }
        let is_new = self.window.lock().count_success();
        // Wakes a task: not with the lock of the window.
        if is_new {
            self.places.add_permits(1);
        }
    }

    /// Notes that a release in a place has failed or is slow: halves the limit, once for all that were on their way when the store became slow.
    fn failed(&self, falls: u64) {
        let mut window = self.window.lock();
        if window.falls == falls {
            let less = (window.limit / 2).min(window.limit.saturating_sub(window.least));
            window.limit -= less;
            // Those that no release has taken go at once.
            window.surplus += less;
            window.surplus -= self.places.forget_permits(window.surplus);
            (window.successes, window.falls) = (0, falls + 1);
        }
    }
}

impl Window {
    /// Counts a success. Returns whether there is a new place for it.
    fn count_success(&mut self) -> bool {
        self.successes += 1;
        if self.successes < self.limit {
            return false;
        }
        (self.limit, self.successes) = (self.limit + 1, 0);
        let is_new = self.surplus == 0;
        self.surplus = self.surplus.saturating_sub(1);
        is_new
    }
}

impl Place<'_> {
    /// Makes an attempt to release in this place. The place is free again when the attempt ends, or when it is `slow`.
    pub(super) async fn during<T>(
        self,
        slow: impl Future<Output = ()>,
        attempt: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let mut attempt = std::pin::pin!(attempt);
        tokio::select! {
            // An answer that comes at the last moment counts. An attempt that is not ready lets the end of the time be seen.
            biased;
            answer = &mut attempt => {
                match answer {
                    Ok(_) => self.throttle.succeeded(),
                    Err(_) => self.throttle.failed(self.falls),
                }
                return answer;
            }
            () = slow => self.throttle.failed(self.falls),
        }
        drop(self);
        attempt.await
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut window = self.throttle.window.lock();
        if window.surplus > 0
            && let Some(permit) = self.permit.take()
        {
            permit.forget();
            window.surplus -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::SystemEnvironment;
    use crate::error::{Error, ErrorKind};

    /// Makes so many attempts at once, each of which takes this long.
    async fn attempts(throttle: &Throttle, many: usize, takes: Duration, answer: Result<()>) {
        let environment = SystemEnvironment::on_tokio_clock();
        let one = || async {
            let attempt = async {
                environment.sleep(takes).await;
                answer.clone()
            };
            drop(throttle.enter().await.during(environment.sleep(SLOW), attempt).await);
        };
        futures_util::future::join_all((0..many).map(|_| one())).await;
    }

    /// Returns the limit, which is the number of places when none is taken.
    fn limit(throttle: &Throttle) -> usize {
        let window = throttle.window.lock();
        assert_eq!(throttle.places.available_permits(), window.limit + window.surplus);
        window.limit
    }

    /// Returns the limit, and the number of places that are taken beyond it.
    fn window(throttle: &Throttle) -> (usize, usize) {
        let window = throttle.window.lock();
        (window.limit, window.surplus)
    }

    fn failure() -> Result<()> {
        Err(Error::new(ErrorKind::Unavailable, "no answer"))
    }

    const FIRST: usize = 64;
    const LEAST: usize = FIRST / LEAST_PART;
    const TRIP: Duration = Duration::from_millis(5);

    #[tokio::test(start_paused = true)]
    async fn the_limit_grows_by_one_for_as_many_successes_as_it_is_if_all_places_are_taken() {
        let throttle = Throttle::new(FIRST);
        for _ in 0..4 {
            attempts(&throttle, FIRST / 2, TRIP, Ok(())).await;
        }
        assert_eq!(limit(&throttle), FIRST);
        attempts(&throttle, FIRST * 10, TRIP, Ok(())).await;
        assert!((FIRST + 7..=FIRST + 9).contains(&limit(&throttle)), "{}", limit(&throttle));
    }

    #[tokio::test(start_paused = true)]
    async fn the_limit_halves_when_attempts_fail_and_does_not_fall_for_ever() {
        let throttle = Throttle::new(FIRST);
        attempts(&throttle, FIRST, TRIP, failure()).await;
        assert_eq!(window(&throttle), (FIRST / 2, 0));
        attempts(&throttle, FIRST * 10, TRIP, failure()).await;
        assert_eq!(limit(&throttle), LEAST);
        attempts(&throttle, LEAST * 100, TRIP, Ok(())).await;
        assert!(limit(&throttle) > LEAST);
    }

    #[tokio::test(start_paused = true)]
    async fn a_limit_that_has_fallen_holds_at_once_and_grows_again_while_its_places_are_taken() {
        let throttle = Throttle::new(FIRST);
        let taken: Vec<_> = std::iter::from_fn(|| throttle.try_enter()).take(FIRST).collect();
        throttle.failed(0);
        throttle.failed(0);
        assert_eq!(window(&throttle), (FIRST / 2, FIRST / 2));
        (0..FIRST / 2).for_each(|_| throttle.succeeded());
        assert_eq!(window(&throttle), (FIRST / 2 + 1, FIRST / 2 - 1));
        drop(taken);
        assert_eq!(limit(&throttle), FIRST / 2 + 1);
        assert_eq!(window(&throttle), (FIRST / 2 + 1, 0));
        throttle.failed(1);
        assert_eq!(window(&throttle), (LEAST + 1, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_is_silent_from_when_none_was_answered_for_so_long_until_one_is() {
        let throttle = Throttle::new(FIRST);
        let before = throttle.store_answers();
        throttle.store_answered();
        throttle.time_passed_since(before);
        assert!(!throttle.is_silent());
        throttle.time_passed_since(throttle.store_answers());
        attempts(&throttle, 1, TRIP, failure()).await;
        assert!(throttle.is_silent());
        throttle.store_answered();
        assert!(!throttle.is_silent());
    }

    #[tokio::test(start_paused = true)]
    async fn an_attempt_that_is_slow_goes_on_without_its_place() {
        let throttle = Throttle::new(FIRST);
        let hanging = attempts(&throttle, FIRST, SLOW * 10, Ok(()));
        let mut hanging = std::pin::pin!(hanging);
        let began = tokio::time::Instant::now();
        assert!(tokio::time::timeout(SLOW / 2, hanging.as_mut()).await.is_err());
        assert!(throttle.try_enter().is_none());
        tokio::select! {
            () = hanging => panic!("it takes longer"),
            _place = throttle.enter() => assert_eq!(began.elapsed(), SLOW),
        }
        assert!(throttle.window.lock().limit < FIRST);
    }
}
