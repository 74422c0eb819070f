//! The ends of sessions that are not left to chance.

use std::time::Duration;

use futures_util::FutureExt;
use ylock_core::environment::Moment;
use ylock_engine_zookeeper::algorithm::store::WatchEvent;

use super::game::{clean, new_base};
use super::said::Step;
use super::sides::Side;

const PATIENCE: Duration = Duration::from_secs(60);

/// A client is killed; another one has watches on what it has, and looks until that is gone.
pub(crate) async fn expires(side: Side) -> Vec<Step> {
    let (base, mut step) = (new_base(), Step::default());
    let (stays, doomed) = (side.servers.session(), side.of_doomed.session());
    stays.attach().await.expect("a session");
    doomed.attach().await.expect("a session");
    step.say("timeouts", (stays.timeout(), doomed.timeout()));
    stays.mkdir(&base).await.expect("the path of the locks");
    let locks = ["one", "two", "three"].map(|lock| format!("{base}/{lock}"));
    let mut watches: Vec<WatchEvent> = Vec::new();
    for lock in &locks {
        step.created("made", doomed.make_both(lock, b"", "doomed-", b"").await);
        step.created("joined", stays.join(lock, "stays-", b"").await);
        step.created("joined again", doomed.join(lock, "doomed-", b"").await);
        stays.catch_up(&base).await.expect("it catches up");
        let (_, all) = stays.list_and_watch(lock).await.expect("a list");
        let (_, own) = stays.read_and_watch(&format!("{lock}/stays-0000000001")).await.expect("a contender");
        let (_, first) =
            stays.read_and_watch(&format!("{lock}/doomed-0000000000")).await.expect("a contender");
        watches.extend([all, own, first]);
    }
    let asked = doomed.asked();
    (side.kill)();
    let deadline = side.clock.now().plus(PATIENCE);
    while stays.list(&locks[0]).await.expect("the lock is there").len() > 1 {
        assert!(side.clock.now() < deadline, "the session ends");
        side.clock.sleep(Duration::from_millis(10)).await;
    }
    step.say("in its time", side.clock.now().since(asked) >= doomed.timeout());
    for lock in &locks {
        step.answer("left", stays.list(lock).await);
        step.answer("counted", stays.count(lock).await);
        step.created("joined after that", stays.join(lock, "stays-", b"").await);
    }
    let heard = watches.iter_mut().map(|watch| watch.as_mut().now_or_never());
    step.say("watches", heard.collect::<Vec<_>>());
    clean(&stays, &base).await;
    vec![step]
}

/// A client closes its session: its watches end, and have not seen that anything was removed that is still there.
pub(crate) async fn is_closed(side: Side) -> Vec<Step> {
    let (base, mut step) = (new_base(), Step::default());
    let (stays, closed) = (side.servers.session(), side.servers.session());
    stays.attach().await.expect("a session");
    closed.attach().await.expect("a session");
    stays.mkdir(&base).await.expect("the path of the locks");
    let lock = format!("{base}/one");
    step.created("made", stays.make_both(&lock, b"", "stays-", b"").await);
    closed.catch_up(&base).await.expect("it catches up");
    let (_, list) = closed.list_and_watch(&lock).await.expect("a list");
    let (_, node) = closed.read_and_watch(&format!("{lock}/stays-0000000000")).await.expect("a contender");
    let over = closed.until_over();
    step.say("before", (closed.is_attached(), closed.is_over()));
    closed.end(Moment::ZERO);
    over.await;
    step.say("after", (closed.is_attached(), closed.is_over()));
    step.say("watches", (list.await, node.await));
    step.answer("check", closed.check(&base).await);
    step.answer("list", closed.list(&lock).await);
    step.say("attached", closed.attach().await.is_ok());
    clean(&stays, &base).await;
    vec![step]
}
