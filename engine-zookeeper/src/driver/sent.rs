//! A request that is on its way.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// A request that was sent, and its answer if there is one already.
pub(crate) struct Sent<F: Future> {
    request: Pin<Box<F>>,
    answer: Option<F::Output>,
}

impl<F: Future> Sent<F> {
    /// Sends a request now, by polling it once: the driver puts it in its queue then, and sends from there in order.
    pub(crate) fn now(request: F) -> Self {
        let mut request = Box::pin(request);
        let answer = match request.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
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
