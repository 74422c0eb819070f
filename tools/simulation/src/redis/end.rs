//! The client's end of a connection: what has arrived there.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::server::Server;

/// What has arrived for a client, and whether more can.
#[derive(Debug, Default)]
pub(super) struct Inbox(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    bytes: VecDeque<u8>,
    /// The connection is known to be broken.
    is_reset: bool,
    waker: Option<Waker>,
}

impl Inbox {
    pub(super) fn put(&self, bytes: &[u8]) {
        self.change(|state| state.bytes.extend(bytes));
    }

    pub(super) fn reset(&self) {
        self.change(|state| state.is_reset = true);
    }

    fn change(&self, how: impl FnOnce(&mut State)) {
        let waker = {
            let mut state = self.0.lock();
            how(&mut state);
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// The client's end of a connection, as the driver uses it.
pub(super) struct End {
    pub(super) server: Arc<Server>,
    pub(super) number: u64,
    pub(super) inbox: Arc<Inbox>,
}

impl AsyncRead for End {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut state = self.inbox.0.lock();
        let length = into.remaining().min(state.bytes.len());
        if length > 0 {
            into.put_slice(&state.bytes.drain(..length).collect::<Vec<_>>());
            return Poll::Ready(Ok(()));
        }
        if state.is_reset {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        state.waker = Some(context.waker().clone());
        Poll::Pending
    }
}

impl AsyncWrite for End {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.inbox.0.lock().is_reset {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        self.server.send(self.number, bytes.to_vec());
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.server.hang_up(self.number);
        Poll::Ready(Ok(()))
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.server.hang_up(self.number);
    }
}

impl fmt::Debug for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("End").field("number", &self.number).finish_non_exhaustive()
    }
}
