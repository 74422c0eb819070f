//! The byte streams to servers, for a program that brings its own: a simulation. Not covered by semver.

use std::fmt;
use std::io;

use async_trait::async_trait;
use tokio::io::{AsyncRead, AsyncWrite};
use ylock_core::Key;

use crate::place;

/// Returns the key of a lock's hash, for a simulation that moves it from server to server.
pub fn place(prefix: &str, key: &Key) -> String {
    place::of(prefix, key)
}

/// A stream of bytes in both directions, as TCP has them.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Stream for S {}

/// Opens streams to servers, in place of TCP; see [`RedisEngine::over`](crate::RedisEngine::over).
#[async_trait]
pub trait Transport: fmt::Debug + Send + Sync {
    /// Opens a stream to a server. The engine limits the time by itself, and drops the future when that is over.
    ///
    /// # Errors
    /// If the server cannot be reached.
    async fn open(&self, host: &str, port: u16) -> io::Result<Box<dyn Stream>>;
}
