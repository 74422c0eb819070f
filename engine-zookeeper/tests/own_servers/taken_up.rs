//! A session that goes on over another connection, because the runtime of the first one has ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tokio::runtime::{Builder, Runtime};
use ylock_core::Unlocked;

use super::own_server::OwnServer;
use super::server::proxy::{Link, MULTI, Proxy};
use super::{LOCK, LONG, client_with, contenders, options, until, within};

const BOUND: Duration = Duration::from_secs(30);

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// Another server may answer from now on, and be behind what the session has seen: it would not show the nodes that the session has.
#[test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
fn the_server_that_a_session_comes_to_catches_up_before_anything_is_asked_of_it() {
    let (main, first) = (runtime(), runtime());
    let server = main.block_on(OwnServer::start());
    let proxy = main.block_on(Proxy::before(&[server.host()]));
    let patient = options(proxy.hosts()).with_lease(LONG);
    let here = first.block_on(client_with(patient));
    let guard = first.block_on(here.locks("users").write("alice")).unwrap();
    drop(first);
    main.block_on(async {
        drop(within("it gets in", here.locks("users").write("bob")).await.unwrap());
        let asked = proxy.asked();
        assert_eq!(asked.len(), 2, "one connection after the other");
        // A write, behind which the server that answers has caught up.
        assert_eq!(asked[1][0], MULTI, "{asked:?}");
        assert!(asked[1].len() > 1, "{asked:?}");
        assert_eq!(within("given back", guard.unlock()).await.unwrap(), Unlocked::Released);
    });
}

/// A waker that stops the thread that wakes it, once, until the thread is let go.
#[derive(Default)]
struct Brake {
    is_used: AtomicBool,
    is_let_go: Mutex<bool>,
    changed: Condvar,
}

impl Brake {
    fn stops(&self) -> bool {
        self.is_used.load(Ordering::SeqCst)
    }

    fn let_go(&self) {
        *self.is_let_go.lock() = true;
        self.changed.notify_all();
    }
}

impl Wake for Brake {
    fn wake(self: Arc<Self>) {
        if !self.is_used.swap(true, Ordering::SeqCst) {
            let mut is_let_go = self.is_let_go.lock();
            self.changed.wait_while_for(&mut is_let_go, |is_let_go| !*is_let_go, BOUND);
        }
    }
}

/// The old driver is in the middle of its last step when its runtime ends, and so does the next runtime, before a connection is made in it:
/// the driver must not take that for the end of its client, and close the session.
#[test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
fn a_driver_that_takes_its_last_step_while_its_runtime_ends_does_not_close_the_session() {
    let (main, first, second) = (runtime(), runtime(), runtime());
    let server = main.block_on(OwnServer::start());
    let proxy = main.block_on(Proxy::before(&[server.host()]));
    let patient = options(proxy.hosts()).with_lease(LONG);
    let here = first.block_on(client_with(patient));
    let guard = first.block_on(here.locks("users").write("alice")).unwrap();
    second.block_on(async { drop(here.locks("users").write("bob").await.unwrap()) });
    main.block_on(until("bob is given back", async || here.keys_in_use() == 1));
    let before = main.block_on(contenders(&[server.host()], LOCK));
    proxy.set(Link::Full);
    // The driver answers, and wakes the task that asked, in the middle of its step.
    let brake = Arc::new(Brake::default());
    let asking = {
        let _inside = second.enter();
        let mut asking = Box::pin(here.inspect("users", "alice"));
        let waker = Waker::from(Arc::clone(&brake));
        assert!(asking.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        asking
    };
    main.block_on(until("the driver stands still", async || brake.stops()));
    // That task has the driver, too.
    drop(asking);
    let ends = std::thread::spawn(move || first.shutdown_timeout(BOUND));
    main.block_on(until("another connection is wanted", async || proxy.refused() > 0));
    second.shutdown_timeout(BOUND);
    brake.let_go();
    ends.join().unwrap();
    proxy.set(Link::Open);
    main.block_on(async {
        within("it goes on", here.inspect("users", "alice")).await.unwrap();
        assert_eq!(contenders(&[server.host()], LOCK).await, before, "the same session");
        assert_eq!(within("given back", guard.unlock()).await.unwrap(), Unlocked::Released);
    });
}
