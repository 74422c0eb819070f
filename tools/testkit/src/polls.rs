//! Polling by hand.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

/// Polls a future once; `None` if it is not ready.
pub async fn poll_once<F: Future + ?Sized>(mut future: Pin<&mut F>) -> Option<F::Output> {
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

/// Polls a future whenever it asks for it, but at most `times` times, and then drops it: a caller that stops
/// waiting at that point. `None` if it did not end before.
pub async fn poll_times<F: Future>(times: usize, future: F) -> Option<F::Output> {
    let mut future = Box::pin(future);
    let mut polls = 0;
    poll_fn(move |context| {
        polls += 1;
        match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if polls >= times => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}
