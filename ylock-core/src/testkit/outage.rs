//! The answers that callers get while the store is away.

use std::time::{Duration, Instant};

use super::within;
use crate::client::Ylock;
use crate::error::{Error, ErrorKind};
use crate::mode::Wait;
use crate::options::Options;

/// Checks that every bounded call says that the store is away: a wait that only ended would be told as a lock that is held. The store must
/// be away by now, and the lock free.
///
/// # Panics
/// If one of them says anything else, or takes much longer than it may. `request_timeout` is that of the client.
pub async fn an_outage_is_told_as_one(ylock: &Ylock, group: &str, request_timeout: Duration) {
    let short = Duration::from_millis(500);
    let lock = ylock.lock(group, "away");
    let within_limit = within(short * 4, "the limit ends the wait", lock.write_within(short)).await;
    assert_unavailable("write_within", within_limit.map(|guard| guard.is_some()));
    let options = Options::default().with_wait(Wait::For(short));
    let waited = within(short * 4, "the wait of the options ends", lock.with_options(options).read()).await;
    assert_unavailable("read", waited.map(|_| true));
    let began = Instant::now();
    let tried = within(request_timeout * 4, "a try ends", lock.try_write()).await;
    assert_unavailable("try_write", tried.map(|guard| guard.is_some()));
    let took = began.elapsed();
    assert!(took < request_timeout * 2, "a try took {took:?} with a request timeout of {request_timeout:?}");
}

fn assert_unavailable(call: &str, answer: Result<bool, Error>) {
    let error = match answer {
        Ok(granted) => panic!("{call} answered {granted} while the store was away"),
        Err(error) => error,
    };
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{call}: {error}");
    assert!(error.key().is_some() && error.engine().is_some(), "{call}: {error:?}");
}
