//! Connecting to servers that are slow.
//!
//! For engines. Not covered by semver.

use std::time::Duration;

use crate::environment::Environment;
use crate::error::Result;

/// Connects, and begins again where a server was too slow for a request: one that is busy for a moment fails a request by its timeout, and many requests
/// make a client. A server that refuses at once ends it, and so does the end of the time for connecting.
///
/// # Errors
/// Those of the last attempt.
pub async fn patiently<T, F>(
    environment: &dyn Environment,
    connect_timeout: Duration,
    request_timeout: Duration,
    attempt: impl Fn() -> F,
) -> Result<T>
where
    F: Future<Output = Result<T>>,
{
    let began = environment.now();
    loop {
        let attempted = environment.now();
        let connected = attempt().await;
        let Err(error) = &connected else { return connected };
        let now = environment.now();
        let was_slow = error.kind().is_silence() && now.since(attempted) >= request_timeout;
        if !was_slow || now.since(began) + request_timeout > connect_timeout {
            return connected;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::environment::SystemEnvironment;
    use crate::error::{Error, ErrorKind};

    const REQUEST: Duration = Duration::from_secs(2);
    const CONNECT: Duration = Duration::from_secs(10);

    /// Connects to a server that takes this long to answer with an error of this kind, but to the fourth attempt. Returns also the number of attempts.
    async fn connect(takes: Duration, kind: ErrorKind) -> (Result<()>, u32) {
        let (environment, attempts) = (SystemEnvironment::on_tokio_clock(), Cell::new(0));
        let attempt = async || {
            attempts.set(attempts.get() + 1);
            environment.sleep(takes).await;
            if attempts.get() == 4 { Ok(()) } else { Err(Error::new(kind, "no answer")) }
        };
        (patiently(&*environment, CONNECT, REQUEST, attempt).await, attempts.get())
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_is_slow_for_a_moment_is_asked_again() {
        let (connected, attempts) = connect(REQUEST, ErrorKind::Unavailable).await;
        assert!(connected.is_ok() && attempts == 4, "{connected:?} after {attempts}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_stays_slow_is_given_up_in_time() {
        let before = tokio::time::Instant::now();
        let (connected, attempts) = connect(REQUEST * 2, ErrorKind::Unavailable).await;
        assert!(connected.is_err() && attempts == 3, "{connected:?} after {attempts}");
        assert!(before.elapsed() <= CONNECT + REQUEST);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_refused_is_not_tried_again() {
        for (takes, kind) in [(Duration::ZERO, ErrorKind::Unavailable), (REQUEST, ErrorKind::Config)] {
            let (connected, attempts) = connect(takes, kind).await;
            assert!(connected.is_err() && attempts == 1, "{connected:?} after {attempts}");
        }
    }
}
