//! The same play on real servers in real time, and on simulated ones in virtual time.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::{Builder, Runtime};
use ylock_simulation::world::{Actor, World};
use ylock_testkit::while_it_goes_on;

/// A test in which nothing happens for so long is stuck.
const STUCK: Duration = Duration::from_secs(60);
/// The virtual time after which a test is stuck.
const LONGEST: Duration = Duration::from_secs(300);

pub(crate) fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime")
}

/// Plays in real time.
pub(crate) fn real<T, F>(play: impl FnOnce() -> F) -> T
where
    F: Future<Output = T>,
{
    runtime().block_on(async { while_it_goes_on(STUCK, "it is not stuck", play()).await })
}

/// Plays as the task of an actor, and ends the world.
pub(crate) fn simulated<T, F>(world: &Arc<World>, actor: Actor, playing: F) -> T
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let answer = Arc::new(Mutex::new(None));
    let to = Arc::clone(&answer);
    let task = async move {
        let said = playing.await;
        *to.lock() = Some(said);
    };
    world.spawn(actor, Box::pin(task));
    let until = u64::try_from(LONGEST.as_nanos()).expect("a time");
    world.run(until, || answer.lock().is_some());
    let said = answer.lock().take();
    world.end();
    said.expect("it is not stuck")
}
