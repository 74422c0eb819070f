//! The limit of how many acquisitions and releases of a client are on their way at once.
//!
//! Without it thousands that begin together would wait for one another at the servers, be taken for lost after the request timeout, and be sent
//! again, while the servers still work on those that no task waits for: from then on none would be answered in time. What keeps locks, and what
//! waiters ask, is not limited.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use ylock_core::environment::Environment;

/// The most at once. Fewer would be slower: servers write what comes together to their disks together.
const MOST: usize = 128;

/// The limit; see the [module](self).
pub(crate) struct Crowd {
    permits: Semaphore,
    /// How often a permit was given back.
    gone: AtomicU64,
}

/// One of those that are on their way.
pub(crate) struct OnItsWay<'a> {
    crowd: &'a Crowd,
    /// `None` for one that was let through beside the limit.
    _permit: Option<SemaphorePermit<'a>>,
}

impl Default for Crowd {
    fn default() -> Self {
        Self { permits: Semaphore::new(MOST), gone: AtomicU64::new(0) }
    }
}

impl Crowd {
    /// Waits for its turn, in the order of the calls; calls `runs` at once and once per `patience` meanwhile. If none comes back for so long, those
    /// before it are tasks of a runtime that is not driven any more, and it goes beside the limit.
    pub(crate) async fn join(
        &self,
        environment: &dyn Environment,
        patience: Duration,
        mut runs: impl FnMut(),
    ) -> OnItsWay<'_> {
        if let Ok(permit) = self.permits.try_acquire() {
            return self.with(Some(permit));
        }
        let mut turn = std::pin::pin!(self.permits.acquire());
        loop {
            runs();
            let gone = self.gone.load(Ordering::Relaxed);
            tokio::select! {
                biased;
                permit = &mut turn => return self.with(permit.ok()),
                () = environment.sleep(patience) => {}
            }
            if self.gone.load(Ordering::Relaxed) == gone {
                return self.with(None);
            }
        }
    }

    fn with<'a>(&'a self, permit: Option<SemaphorePermit<'a>>) -> OnItsWay<'a> {
        OnItsWay { crowd: self, _permit: permit }
    }
}

impl Drop for OnItsWay<'_> {
    fn drop(&mut self) {
        self.crowd.gone.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "a test starts tasks of its own")]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    use ylock_core::environment::SystemEnvironment;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(2);

    #[tokio::test(start_paused = true)]
    async fn no_more_than_the_limit_are_on_their_way_and_all_get_there() {
        let (environment, crowd) = (SystemEnvironment::on_tokio_clock(), Arc::new(Crowd::default()));
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let tasks = (0..MOST * 20).map(|_| {
            let (environment, crowd) = (Arc::clone(&environment), Arc::clone(&crowd));
            let (now, most) = (Arc::clone(&now), Arc::clone(&most));
            tokio::spawn(async move {
                let _on_its_way = crowd.join(&*environment, PATIENCE, || {}).await;
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                // Slow, but answered: those that wait ten times as long as their patience are not let through.
                tokio::time::sleep(PATIENCE * 9 / 10).await;
                now.fetch_sub(1, Ordering::SeqCst);
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await.unwrap();
        }
        assert_eq!(most.load(Ordering::SeqCst), MOST);
    }

    #[tokio::test(start_paused = true)]
    async fn tasks_that_do_not_run_keep_no_others_back() {
        let (environment, crowd) = (SystemEnvironment::on_tokio_clock(), Crowd::default());
        let mut stuck = Vec::new();
        for _ in 0..MOST {
            stuck.push(crowd.join(&*environment, PATIENCE, || {}).await);
        }
        let (start, mut shown) = (tokio::time::Instant::now(), 0);
        let beside = crowd.join(&*environment, PATIENCE, || shown += 1).await;
        assert_eq!((start.elapsed(), shown), (PATIENCE, 1));
        drop((beside, stuck));
        let start = tokio::time::Instant::now();
        let _next = crowd.join(&*environment, PATIENCE, || {}).await;
        assert_eq!(start.elapsed(), Duration::ZERO);
    }
}
