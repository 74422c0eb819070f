//! The end of a session, as the driver tells it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker, ready};

use futures_util::task::AtomicWaker;
use zookeeper_client::StateWatcher;

/// Ends when the session has ended. What it waits with is never dropped before that, but leaked.
///
/// The driver's `StateWatcher::changed` (asyncs-sync 0.4.0, `Notify::remove`) is unsound: dropped in the moment in which the driver publishes
/// a state, it takes itself out of a list whose end lies on the stack of the publishing thread, after that thread has gone on. Two words of
/// that stack are overwritten, in one test run a return address. A waiter that stays where it is does no harm, however late it is told.
///
/// What leaks is the waiter, less than a kilobyte, for each session whose thread ends before it. The task that it would wake does not, nor the
/// runtime that a task keeps: the waiter knows only a waker of ours, which is emptied.
pub(super) struct Ended {
    wait: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    waker: Arc<Forwarding>,
}

/// Wakes the task that polled last.
#[derive(Default)]
struct Forwarding(AtomicWaker);

impl Wake for Forwarding {
    fn wake(self: Arc<Self>) {
        self.0.wake();
    }
}

impl Ended {
    pub(super) fn of(mut session: StateWatcher) -> Self {
        Self::waiting(async move {
            // The last state is told once.
            while !session.peek_state().is_terminated() {
                #[allow(clippy::disallowed_methods, reason = "it is not dropped: see above")]
                session.changed().await;
            }
        })
    }

    fn waiting(wait: impl Future<Output = ()> + Send + 'static) -> Self {
        Self { wait: Some(Box::pin(wait)), waker: Arc::default() }
    }
}

impl Future for Ended {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Self { wait, waker } = &mut *self;
        if let Some(waiting) = wait {
            waker.0.register(context.waker());
            ready!(waiting.as_mut().poll(&mut Context::from_waker(&Waker::from(Arc::clone(waker)))));
            *wait = None;
        }
        Poll::Ready(())
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        drop(self.waker.0.take());
        std::mem::forget(self.wait.take());
    }
}

impl fmt::Debug for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Ended").field(&self.wait.is_none()).finish()
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    /// Returns a wait, what ends it, and something that is shared for as long as the wait exists.
    fn waiting() -> (Ended, oneshot::Sender<()>, Arc<()>) {
        let (end, ended) = oneshot::channel();
        let alive = Arc::new(());
        let held = Arc::clone(&alive);
        let wait = async move {
            drop(ended.await);
            drop(held);
        };
        (Ended::waiting(wait), end, alive)
    }

    async fn polled_once(ended: &mut Ended) {
        tokio::select! {
            biased;
            () = ended => panic!("it has not ended"),
            () = std::future::ready(()) => {}
        }
    }

    #[tokio::test]
    async fn a_wait_that_is_given_up_stays_where_it_is() {
        let (mut ended, end, alive) = waiting();
        polled_once(&mut ended).await;
        drop(ended);
        assert_eq!(Arc::strong_count(&alive), 2);
        drop(end);
    }

    /// What a runtime keeps alive is kept alive by the wakers of its tasks.
    #[tokio::test]
    async fn a_wait_that_is_given_up_keeps_no_waker() {
        struct Counted;
        impl Wake for Counted {
            fn wake(self: Arc<Self>) {}
        }
        let (mut ended, end, _alive) = waiting();
        let counted = Arc::new(Counted);
        let waker = Waker::from(Arc::clone(&counted));
        for _ in 0..3 {
            assert!(Pin::new(&mut ended).poll(&mut Context::from_waker(&waker)).is_pending());
        }
        drop((ended, waker));
        assert_eq!(Arc::strong_count(&counted), 1);
        drop(end);
    }

    #[tokio::test]
    async fn a_wait_that_is_over_leaves_nothing() {
        let (mut ended, end, alive) = waiting();
        polled_once(&mut ended).await;
        end.send(()).unwrap();
        (&mut ended).await;
        (&mut ended).await;
        assert_eq!(Arc::strong_count(&alive), 1);
    }
}
