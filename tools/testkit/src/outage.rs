//! The answers that callers get while the store is away.

use std::future::Future;
use std::time::Duration;

use ylock_core::{Error, ErrorKind, Lock, Options, Ylock};

use super::{quiet_time, within};

/// Checks that every bounded call says that the store is away: a wait that only ended would be told as a lock that is held. The store must
/// be away by now, and the lock free.
///
/// # Panics
/// If one of them says anything else, or takes much longer than it may. `request_timeout` is that of the client.
pub async fn an_outage_is_told_as_one(ylock: &Ylock, group: &str, request_timeout: Duration) {
    let lock = ylock.lock(group, "away");
    waits_are_unavailable(&lock).await;
    let tried = in_time(request_timeout, lock.write().now()).await;
    assert_unavailable("try_write", tried.map(|guard| guard.is_some()));
    let tried = in_time(request_timeout, lock.write().now().run(|_| no_work())).await;
    assert_unavailable("try_run", tried.map(|done| done.is_some()));
    let set = ylock.multi_lock().write(group, "away").write(group, "gone");
    let tried = in_time(request_timeout, set.acquire().now()).await;
    assert_unavailable("try_acquire", tried.map(|guards| guards.is_some()));
    let waited = within(SHORT * 6, "the limit ends the wait for a set", set.acquire().within(SHORT)).await;
    assert_unavailable("acquire_within", waited.map(|guards| guards.is_some()));
}

const SHORT: Duration = Duration::from_millis(500);

async fn waits_are_unavailable(lock: &Lock) {
    let (short, bound) = (SHORT, SHORT * 6);
    let waited = within(bound, "the limit ends the wait", lock.write().within(short)).await;
    assert_unavailable("write_within", waited.map(|guard| guard.is_some()));
    let waited = within(bound, "the limit ends the wait to read", lock.read().within(short)).await;
    assert_unavailable("read_within", waited.map(|guard| guard.is_some()));
    let waited =
        within(bound, "the limit ends the wait to work", lock.write().within(short).run(|_| no_work())).await;
    assert_unavailable("run_within", waited.map(|done| done.is_some()));
    let options = Options::default().with_max_wait(short);
    let waited = within(bound, "the wait of the options ends", lock.with_options(options).read()).await;
    assert_unavailable("read", waited.map(|_| true));
}

async fn no_work() {
    panic!("the work began while the store was away");
}

/// Returns the answer of a try, which must come about one request timeout after its request at the latest.
async fn in_time<T>(request_timeout: Duration, tried: impl Future<Output = T>) -> T {
    let began = quiet_time();
    let answer = within(request_timeout * 4 + SHORT * 10, "a try ends", tried).await;
    let took = quiet_time() - began;
    assert!(
        took < request_timeout * 2 + SHORT * 2,
        "a try took {took:?} with a request timeout of {request_timeout:?}"
    );
    answer
}

fn assert_unavailable(call: &str, answer: Result<bool, Error>) {
    let error = match answer {
        Ok(granted) => panic!("{call} answered {granted} while the store was away"),
        Err(error) => error,
    };
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{call}: {error}");
    assert!(error.key().is_some() && error.engine().is_some(), "{call}: {error:?}");
}
