use std::sync::atomic::{AtomicU32, Ordering};

use tokio::runtime::{Builder, Runtime};

use super::*;
use crate::environment::{BoxFuture, Moment, SystemEnvironment};

/// A connection that knows its number.
#[derive(Clone, Debug)]
struct Numbered(u32, Arc<AtomicU32>);

impl Connected for Numbered {
    fn is_closed(&self) -> bool {
        self.1.load(Ordering::Relaxed) == CLOSED
    }

    fn ended(&self) {
        self.1.fetch_add(1, Ordering::Relaxed);
    }
}

const CLOSED: u32 = 1_000;

/// What connects, and counts how often.
struct Server {
    shared: Arc<SharedConnection<Numbered>>,
    attempts: Arc<AtomicU32>,
    /// How often it was told that a connection has ended.
    ended: Arc<AtomicU32>,
}

impl Server {
    fn new(environment: &Arc<dyn Environment>) -> Self {
        let timeouts = Timeouts { connect: Duration::from_secs(10), request: Duration::from_millis(200) };
        let shared = Arc::new(SharedConnection::new(environment, timeouts));
        Self { shared, attempts: Arc::default(), ended: Arc::default() }
    }

    fn attempts(&self) -> u32 {
        self.attempts.load(Ordering::Relaxed)
    }

    /// Connects by work that takes this long.
    async fn get(&self, takes: Duration, fails: bool) -> Result<Live<Numbered>> {
        let connect = || -> Answer<Result<()>> {
            let (shared, ended) = (Arc::clone(&self.shared), Arc::clone(&self.ended));
            let number = self.attempts.fetch_add(1, Ordering::Relaxed) + 1;
            Box::pin(async move {
                shared.environment.sleep(takes).await;
                if fails {
                    return Err(Error::new(ErrorKind::Unavailable, "refused"));
                }
                shared.put(Numbered(number, ended));
                Ok(())
            })
        };
        self.shared.get(connect).await
    }

    async fn number(&self) -> u32 {
        self.get(Duration::ZERO, false).await.unwrap().0
    }
}

fn current_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn all_that_need_a_connection_wait_for_one_attempt() {
    let server = Server::new(&SystemEnvironment::on_tokio_clock());
    let takes = Duration::from_secs(1);
    let (one, other) = tokio::join!(server.get(takes, false), server.get(takes, false));
    assert_eq!((one.unwrap().0, other.unwrap().0, server.number().await), (1, 1, 1));
}

#[tokio::test(start_paused = true)]
async fn after_an_attempt_that_has_failed_there_is_a_moment_of_rest() {
    let server = Server::new(&SystemEnvironment::on_tokio_clock());
    for _ in 0..10 {
        server.get(Duration::ZERO, true).await.unwrap_err();
    }
    assert_eq!(server.attempts(), 1);
    server.shared.environment.sleep(Duration::from_millis(100)).await;
    assert_eq!(server.number().await, 2);
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_forgotten_or_closed_is_made_again_and_a_newer_one_stays() {
    let server = Server::new(&SystemEnvironment::on_tokio_clock());
    let first = server.get(Duration::ZERO, false).await.unwrap();
    assert!(server.shared.forget(&first) && !server.shared.forget(&first));
    assert_eq!(server.ended.load(Ordering::Relaxed), 1);
    assert_eq!(server.number().await, 2);
    assert!(!server.shared.forget(&first) && !server.shared.is_current(&first));
    server.shared.forget_if(|live| live.0 == 1);
    assert_eq!(server.number().await, 2);
    server.ended.store(CLOSED, Ordering::Relaxed);
    assert!(server.shared.current().is_none());
}

#[test]
fn a_connection_ends_with_its_runtime() {
    let server = Server::new(&SystemEnvironment::shared());
    let (first, second) = (Runtime::new().unwrap(), current_thread());
    assert_eq!(first.block_on(server.number()), 1);
    assert_eq!(second.block_on(server.number()), 1, "one that is there is used");
    drop(first);
    assert_eq!(second.block_on(server.number()), 2);
}

#[test]
fn a_connection_whose_runtime_stands_still_costs_a_caller_elsewhere_no_more_than_connecting() {
    let server = Server::new(&SystemEnvironment::shared());
    let (idle, second) = (current_thread(), current_thread());
    assert_eq!(idle.block_on(server.number()), 1);
    // Longer than a runtime is trusted that has just run something.
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(second.block_on(server.number()), 2);
    assert_eq!(server.ended.load(Ordering::Relaxed), 1);
}

/// The attempt was polled, and waits for a timer of that runtime.
#[test]
fn an_attempt_whose_runtime_stands_still_holds_up_no_caller_elsewhere() {
    let server = Server::new(&SystemEnvironment::shared());
    let (idle, second) = (current_thread(), current_thread());
    idle.block_on(async {
        let mut attempt = std::pin::pin!(server.get(Duration::from_millis(1), false));
        for _ in 0..5 {
            let _ = futures_util::poll!(attempt.as_mut());
            tokio::task::yield_now().await;
        }
    });
    assert_eq!(server.attempts(), 1);
    assert_eq!(second.block_on(server.number()), 2);
}

/// The runtime comes to stand still after the request was sent.
#[test]
fn an_answer_over_a_connection_whose_runtime_stands_still_is_not_waited_for() {
    let server = Server::new(&SystemEnvironment::shared());
    let (idle, second) = (current_thread(), current_thread());
    let live = idle.block_on(server.get(Duration::ZERO, false)).unwrap();
    idle.block_on(async { assert!(server.shared.elsewhere(&live).is_none(), "it is driven here") });
    let waits = || driven(server.shared.elsewhere(&live), std::future::pending::<()>());
    // The second one finds that the first has found it out.
    for _ in 0..2 {
        assert_eq!(second.block_on(async { waits().await }).unwrap_err().kind(), ErrorKind::Unavailable);
    }
    assert!(!server.shared.is_current(&live));
    let answered = || driven(server.shared.elsewhere(&live), std::future::ready(1));
    assert_eq!(second.block_on(async { answered().await }).unwrap(), 1, "an answer that is there counts");
}

#[test]
fn a_runtime_that_ends_takes_no_newer_connection_along() {
    let server = Server::new(&SystemEnvironment::shared());
    let (first, second) = (Runtime::new().unwrap(), current_thread());
    let old = first.block_on(server.get(Duration::ZERO, false)).unwrap();
    assert!(server.shared.forget(&old));
    assert_eq!(second.block_on(server.number()), 2);
    drop(first);
    assert_eq!(second.block_on(server.number()), 2);
}

/// An environment whose runtime runs nothing until it is abandoned.
#[derive(Debug)]
struct Standing(Arc<dyn Environment>, Mutex<Still>);

enum Still {
    Runs(Vec<BoxFuture>),
    Abandoned,
}

impl std::fmt::Debug for Still {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Still")
    }
}

impl Environment for Standing {
    fn now(&self) -> Moment {
        self.0.now()
    }

    fn wall_micros(&self) -> i64 {
        self.0.wall_micros()
    }

    fn random(&self) -> u64 {
        self.0.random()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture {
        self.0.sleep(duration)
    }

    fn spawn(&self, future: BoxFuture) {
        match &mut *self.1.lock() {
            Still::Runs(tasks) => tasks.push(future),
            Still::Abandoned => self.0.spawn(future),
        }
    }

    fn abandon_standing(&self, _: Option<RuntimeId>, _: Duration) -> Answer<bool> {
        let before = std::mem::replace(&mut *self.1.lock(), Still::Abandoned);
        Box::pin(std::future::ready(matches!(before, Still::Runs(_))))
    }

    fn enter(&self) -> bool {
        true
    }
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_waits_for_an_attempt_looks_whether_its_runtime_stands_still() {
    let system = SystemEnvironment::on_tokio_clock();
    let standing: Arc<dyn Environment> = Arc::new(Standing(system, Mutex::new(Still::Runs(Vec::new()))));
    let server = Server::new(&standing);
    let second = tokio::time::timeout(Duration::from_secs(60), server.number()).await;
    assert_eq!(second.expect("it looks"), 2);
}
