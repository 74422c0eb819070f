//! Wakers that drop guards, and tests that may hang where that locks something twice.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::task::{Wake, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Builder;
use ylock_core::{Guard, Ylock};
use ylock_testkit::eventually;

const SOON: Duration = Duration::from_secs(10);

/// Drops a guard when it is woken.
pub(crate) struct Drops(Mutex<Option<Guard>>);

impl Drops {
    pub(crate) fn waker(guard: Guard) -> Waker {
        Arc::new(Self(Mutex::new(Some(guard)))).into()
    }
}

impl Wake for Drops {
    fn wake(self: Arc<Self>) {
        let guard = self.0.lock().take();
        drop(guard);
    }
}

/// A thread that locks itself out would hang for ever: it is left behind.
pub(crate) fn within_bounds(work: impl Future<Output = ()> + Send + 'static) {
    let (done, ended) = channel();
    std::thread::spawn(move || {
        Builder::new_current_thread().enable_all().build().unwrap().block_on(work);
        done.send(()).unwrap();
    });
    ended.recv_timeout(SOON * 2).expect("it hangs, or has failed");
}

pub(crate) async fn given_back(ylock: &Ylock) {
    eventually(SOON, "given back", || async { ylock.keys_in_use() == 0 }).await;
}
