//! The end of a session, as the driver tells it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use zookeeper_client::StateWatcher;

/// Ends when the session has ended. What it waits with is never dropped before that, but leaked.
///
/// The driver's `StateWatcher::changed` (asyncs-sync 0.4.0, `Notify::remove`) is unsound: dropped in the moment in which the driver publishes
/// a state, it takes itself out of a list whose end lies on the stack of the publishing thread, after that thread has gone on. Two words of
/// that stack are overwritten, in one test run a return address. A waiter that stays where it is does no harm, however late it is told.
///
/// What leaks is the waiter and the task that it would wake, one or two kilobytes, for each session whose runtime ends before it.
pub(super) struct Ended(Option<Pin<Box<dyn Future<Output = ()> + Send>>>);

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
        Self(Some(Box::pin(wait)))
    }
}

impl Future for Ended {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if let Some(wait) = &mut self.0 {
            ready!(wait.as_mut().poll(context));
            self.0 = None;
        }
        Poll::Ready(())
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        std::mem::forget(self.0.take());
    }
}

impl fmt::Debug for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Ended").field(&self.0.is_none()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

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
