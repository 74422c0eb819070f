//! A limit on how many releases that no waiter of this client waits for are on their way at once.
//!
//! A store answers so many requests a second and no more. Ten thousand releases that are sent together wait there for each other until
//! their time limits have passed, are sent again, and wait longer: on a busy cluster of Cassandra none of them, and no renewal
//! between them, was answered in time. So a client sends a few at once. The limit follows what the store can do, as the window of a
//! TCP connection does: it grows while releases are answered, and halves when one fails or is slow.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::runtime::{Handle, Id};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::environment::Environment;
use crate::error::Result;

/// The first limit.
const FIRST: usize = 64;
/// The least that the limit falls to: a store that is away answers none, and must not be slow when it is back.
const LEAST: usize = 16;
/// A release is slow that takes longer than this. It goes on, but not in its place: while one part of the store does not answer, releases
/// to the other parts must get through.
const SLOW: Duration = Duration::from_secs(2);

/// The throttles of one client, one for each runtime: releases in a runtime that is not driven keep their places, and must not keep
/// those of other runtimes waiting.
#[derive(Debug, Default)]
pub(super) struct Throttles(Mutex<HashMap<Option<Id>, Weak<Throttle>>>);

/// The limit for the releases in one runtime; see the [module](self).
#[derive(Debug)]
pub(super) struct Throttle {
    /// Fair: releases go in the order in which the locks were given back.
    places: Semaphore,
    window: Mutex<Window>,
}

#[derive(Debug)]
struct Window {
    limit: usize,
    /// The answers since the limit changed, of those that left no place empty.
    answered: usize,
    /// The number of places that are still taken but must not be taken again, because the limit has fallen.
    surplus: usize,
}

/// A place among the releases that are on their way.
#[derive(Debug)]
pub(super) struct Place<'a> {
    throttle: &'a Throttle,
    permit: Option<SemaphorePermit<'a>>,
}

impl Throttles {
    /// Returns the throttle for the releases in the caller's runtime.
    pub(super) fn of_this_runtime(&self) -> Arc<Throttle> {
        let runtime = Handle::try_current().ok().map(|handle| handle.id());
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(throttle) = all.get(&runtime).and_then(Weak::upgrade) {
            return throttle;
        }
        all.retain(|_, throttle| throttle.strong_count() > 0);
        let throttle = Arc::default();
        all.insert(runtime, Arc::downgrade(&throttle));
        throttle
    }
}

impl Default for Throttle {
    fn default() -> Self {
        let window = Window { limit: FIRST, answered: 0, surplus: 0 };
        Self { places: Semaphore::new(FIRST), window: Mutex::new(window) }
    }
}

impl Throttle {
    /// Returns a place, if one is free and no other release waits for it.
    pub(super) fn try_enter(&self) -> Option<Place<'_>> {
        let permit = self.places.try_acquire().ok()?;
        Some(Place { throttle: self, permit: Some(permit) })
    }

    /// Waits for a place, in the order of the calls.
    pub(super) async fn enter(&self) -> Place<'_> {
        // The semaphore is not closed. If it were, a release without a place would be better than none.
        Place { throttle: self, permit: self.places.acquire().await.ok() }
    }

    fn window(&self) -> MutexGuard<'_, Window> {
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place<'_> {
    /// Makes an attempt to release in this place. The place is free again when the attempt ends, or when it is slow.
    pub(super) async fn during<T>(
        self,
        environment: &dyn Environment,
        attempt: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let mut attempt = std::pin::pin!(attempt);
        tokio::select! {
            // An answer that is there after a pause of the process is not slow. The attempt that is not ready lets the end of
            // the time be seen.
            biased;
            answer = &mut attempt => {
                match &answer {
                    Ok(_) => self.throttle.answered(),
                    Err(_) => self.throttle.failed(),
                }
                return answer;
            }
            () = environment.sleep(SLOW) => self.throttle.failed(),
        }
        drop(self);
        attempt.await
    }
}

impl Throttle {
    fn answered(&self) {
        if self.places.available_permits() > 0 {
            return;
        }
        let mut window = self.window();
        window.answered += 1;
        if window.answered >= window.limit {
            (window.limit, window.answered) = (window.limit + 1, 0);
            // The surplus is what the store could not do: it goes first.
            match window.surplus {
                0 => self.places.add_permits(1),
                _ => window.surplus -= 1,
            }
        }
    }

    /// Halves the limit; once for all that were on their way when the store became slow.
    fn failed(&self) {
        let mut window = self.window();
        if window.surplus == 0 {
            let less = (window.limit / 2).min(window.limit.saturating_sub(LEAST));
            (window.limit, window.answered, window.surplus) = (window.limit - less, 0, less);
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut window = self.throttle.window();
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
            drop(throttle.enter().await.during(&*environment, attempt).await);
        };
        futures_util::future::join_all((0..many).map(|_| one())).await;
    }

    /// Returns the limit, which is the number of places when none is taken.
    fn limit(throttle: &Throttle) -> usize {
        let window = throttle.window();
        assert_eq!(throttle.places.available_permits(), window.limit + window.surplus);
        window.limit
    }

    fn failure() -> Result<()> {
        Err(Error::new(ErrorKind::Unavailable, "no answer"))
    }

    const TRIP: Duration = Duration::from_millis(5);

    #[tokio::test(start_paused = true)]
    async fn the_limit_grows_by_one_for_as_many_answers_as_it_is_if_all_places_are_taken() {
        let throttle = Throttle::default();
        attempts(&throttle, FIRST / 2, TRIP, Ok(())).await;
        assert_eq!(limit(&throttle), FIRST);
        attempts(&throttle, FIRST * 10, TRIP, Ok(())).await;
        assert!((FIRST + 8..=FIRST + 10).contains(&limit(&throttle)), "{}", limit(&throttle));
    }

    #[tokio::test(start_paused = true)]
    async fn the_limit_halves_when_attempts_fail_and_does_not_fall_for_ever() {
        let throttle = Throttle::default();
        attempts(&throttle, 1, TRIP, failure()).await;
        assert_eq!((limit(&throttle), throttle.window().surplus), (FIRST / 2, FIRST / 2 - 1));
        attempts(&throttle, FIRST * 10, TRIP, failure()).await;
        assert_eq!(limit(&throttle), LEAST);
        attempts(&throttle, LEAST * 100, TRIP, Ok(())).await;
        assert!(limit(&throttle) > LEAST);
    }

    #[tokio::test(start_paused = true)]
    async fn an_attempt_that_is_slow_goes_on_without_its_place() {
        let throttle = Throttle::default();
        let hanging = attempts(&throttle, FIRST, SLOW * 10, Ok(()));
        let mut hanging = std::pin::pin!(hanging);
        let began = tokio::time::Instant::now();
        assert!(tokio::time::timeout(SLOW / 2, hanging.as_mut()).await.is_err());
        assert!(throttle.try_enter().is_none());
        tokio::select! {
            () = hanging => panic!("it takes longer"),
            _place = throttle.enter() => assert_eq!(began.elapsed(), SLOW),
        }
        assert!(throttle.window().limit < FIRST);
    }
}
