//! A limit on how many requests of one kind are on their way at once.
//!
//! A cluster answers so many requests a second and no more. Ten thousand that are sent together wait there for each other until
//! their time limit has passed, are sent again, and wait longer: beside other work nothing gets through any more. Of a few, each is answered
//! in time.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use ylock_core::environment::{Environment, Moment};

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Limit {
    most: usize,
    /// The time for which a place is taken at most. A request ends in its own time; one that does not is in a runtime that is not driven, and
    /// must not keep those of other runtimes waiting.
    longest: Duration,
    environment: Arc<dyn Environment>,
    places: Mutex<Places>,
}

#[derive(Debug, Default)]
struct Places {
    last: u64,
    /// The requests that are on their way, each with when it began; the oldest first.
    taken: VecDeque<(u64, Moment)>,
    /// In the order in which they came. The receiver of one that was given up is gone.
    waiting: VecDeque<(u64, oneshot::Sender<()>)>,
}

/// A place among the requests that are on their way. Dropping it lets the next one go.
#[derive(Debug)]
pub(crate) struct Taken<'a> {
    limit: &'a Limit,
    number: u64,
}

impl Limit {
    pub(crate) fn new(most: usize, longest: Duration, environment: &Arc<dyn Environment>) -> Self {
        Self { most, longest, environment: Arc::clone(environment), places: Mutex::default() }
    }

    /// Waits until fewer than the limit are on their way; in the order of the calls. Can be dropped at any time.
    pub(crate) async fn enter(&self) -> Taken<'_> {
        // Declared first, so that it is dropped after the turn: what a waiter leaves must not be given to itself.
        let mut taken = Taken { limit: self, number: 0 };
        let (number, mut turn) = self.queue_up();
        taken.number = number;
        loop {
            tokio::select! {
                biased;
                // The sender of a waiter that is there is not dropped.
                _ = &mut turn => return taken,
                () = self.environment.sleep(self.longest) => self.lock().admit(self),
            }
        }
    }

    fn queue_up(&self) -> (u64, oneshot::Receiver<()>) {
        let (go, turn) = oneshot::channel();
        let mut places = self.lock();
        places.last += 1;
        let number = places.last;
        places.waiting.push_back((number, go));
        places.admit(self);
        (number, turn)
    }

    fn lock(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Places {
    /// Lets those go that wait, as many as there are places.
    fn admit(&mut self, limit: &Limit) {
        let now = limit.environment.now();
        while self.taken.front().is_some_and(|(_, began)| began.plus(limit.longest) <= now) {
            self.taken.pop_front();
        }
        while self.taken.len() < limit.most {
            let Some((number, go)) = self.waiting.pop_front() else { return };
            // Waking a task only puts it into the queue of its runtime: it runs nothing here.
            if go.send(()).is_ok() {
                self.taken.push_back((number, now));
            }
        }
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let mut places = self.limit.lock();
        let number = self.number;
        // Sorted: numbers are given in the order of the queue.
        if let Ok(index) = places.taken.binary_search_by_key(&number, |(number, _)| *number) {
            places.taken.remove(index);
        }
        places.admit(self.limit);
    }
}

#[cfg(test)]
mod tests {
    use ylock_core::environment::SystemEnvironment;
    use ylock_core::testkit::poll_once;

    use super::*;

    const LONGEST: Duration = Duration::from_secs(4);

    fn limit() -> Limit {
        Limit::new(2, LONGEST, &SystemEnvironment::on_tokio_clock())
    }

    #[tokio::test(start_paused = true)]
    async fn so_many_go_at_once_and_the_others_in_the_order_in_which_they_came() {
        let limit = limit();
        let (one, two) = (limit.enter().await, limit.enter().await);
        let (mut third, mut fourth) = (Box::pin(limit.enter()), Box::pin(limit.enter()));
        assert!(poll_once(third.as_mut()).await.is_none());
        assert!(poll_once(fourth.as_mut()).await.is_none());
        drop(two);
        assert!(poll_once(fourth.as_mut()).await.is_none());
        let third = poll_once(third.as_mut()).await.expect("it is the next");
        drop(one);
        let fourth = poll_once(fourth.as_mut()).await.expect("it is the next");
        drop((third, fourth));
        assert!(limit.lock().taken.is_empty() && limit.lock().waiting.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_waiter_that_gives_up_takes_no_place_also_when_its_turn_has_come() {
        let limit = limit();
        let (one, two) = (limit.enter().await, limit.enter().await);
        let (mut gives_up, mut is_late) = (Box::pin(limit.enter()), Box::pin(limit.enter()));
        assert!(poll_once(gives_up.as_mut()).await.is_none());
        assert!(poll_once(is_late.as_mut()).await.is_none());
        drop(gives_up);
        drop(one);
        // Its turn has come, and it does not know it yet.
        drop(is_late);
        drop(two);
        assert!(limit.lock().taken.is_empty() && limit.lock().waiting.is_empty());
        let _both = (limit.enter().await, limit.enter().await);
    }

    /// Places of a runtime that is not driven: they are not given back, and end by themselves.
    #[tokio::test(start_paused = true)]
    async fn a_place_that_is_not_given_back_is_free_after_a_while() {
        let limit = limit();
        let _stuck = (limit.enter().await, limit.enter().await);
        let began = tokio::time::Instant::now();
        drop(limit.enter().await);
        assert_eq!(began.elapsed(), LONGEST);
    }
}
