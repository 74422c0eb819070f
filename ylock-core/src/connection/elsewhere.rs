//! Waiting for an answer over a connection that another runtime drives.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::Life;
use crate::environment::Environment;
use crate::error::{Error, ErrorKind, Result};

/// The other runtime that drives a connection.
pub struct Elsewhere {
    pub(super) environment: Arc<dyn Environment>,
    pub(super) life: Arc<Life>,
    /// How long that runtime may run nothing.
    pub(super) patience: Duration,
}

/// Waits for an answer. The runtime that drives the connection may come to stand still after the
/// request was sent: then no answer comes, and the caller has time left for another request if it
/// does not wait for as long as an answer may take.
///
/// # Errors
/// [`Unavailable`](ErrorKind::Unavailable) if that runtime stands still. The server may have read
/// the request.
pub async fn driven<T>(elsewhere: Option<Elsewhere>, answer: impl Future<Output = T>) -> Result<T> {
    match elsewhere {
        None => Ok(answer.await),
        Some(elsewhere) => Box::pin(elsewhere.wait(answer)).await,
    }
}

impl Elsewhere {
    async fn wait<T>(self, answer: impl Future<Output = T>) -> Result<T> {
        let mut answer = pin!(answer);
        loop {
            let stands = async {
                self.environment.sleep(self.patience).await;
                self.environment.abandon_standing(Some(self.life.runtime), self.patience).await;
                // Or another task has found out before.
                self.life.is_over.load(Ordering::Acquire)
            };
            tokio::select! {
                biased;
                answer = &mut answer => return Ok(answer),
                stands = stands => if stands {
                    let words = "the runtime of the connection stands still";
                    return Err(Error::new(ErrorKind::Unavailable, words));
                },
            }
        }
    }
}

impl fmt::Debug for Elsewhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Elsewhere").field("runtime", &self.life.runtime).finish_non_exhaustive()
    }
}
