//! A request that is on its way.

use std::future::Future;
use std::task::{Context, Poll, Waker};

use futures_util::FutureExt;

/// A request that was sent, and its answer if there is one already.
pub(crate) struct InFlight<F: Future> {
    request: F,
    answer: Option<F::Output>,
}

impl<F: Future + Unpin> InFlight<F> {
    /// Sends a request now, by polling it once: the driver puts it in its queue then, and sends from there in order.
    pub(crate) fn send(mut request: F) -> Self {
        let answer = match request.poll_unpin(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answer) => Some(answer),
            Poll::Pending => None,
        };
        Self { request, answer }
    }

    pub(crate) async fn answer(self) -> F::Output {
        match self.answer {
            Some(answer) => answer,
            None => self.request.await,
        }
    }
}
