//! One contender: a client of its own that goes in and out.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use tokio::sync::watch;
use ylock_core::engine::{AcquisitionId, Engine, Grant, Request};
use ylock_core::environment::{Environment, Moment};
use ylock_core::{ClientName, Key, Mode, Owner, Result};

use crate::critical_section::{CriticalSection, Visit};
use crate::matrix::{Call, Point};

/// The lease: far longer than any contender holds, so that a holder need not renew.
pub(crate) const LEASE: Duration = Duration::from_secs(30);
/// The mean pause of a contender that was told that the lock is taken; each pause is between a half and three halves of it.
pub(crate) const RETRY: Duration = Duration::from_millis(50);
/// The number of tries to give back, and the pause after each.
const RELEASES: u32 = 100;
const RELEASE_PAUSE: Duration = Duration::from_millis(50);

/// One contender; see the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct Contender {
    pub(crate) number: u32,
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) environment: Arc<dyn Environment>,
}

/// The task of a contender, until the point is over.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub(crate) point: Point,
    pub(crate) section: Arc<CriticalSection>,
    pub(crate) key: Key,
    pub(crate) round: u32,
    /// The moment at which all begin.
    pub(crate) start: Moment,
    /// Becomes true when the point is over.
    pub(crate) is_over: watch::Receiver<bool>,
}

/// The outcome of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Came {
    In,
    /// It was told no, or did not get an answer.
    NotIn,
    /// The point was over before the answer came.
    Over,
}

impl Contender {
    /// Calls once.
    pub(crate) async fn once(self, task: Task) {
        self.wait_for(task.start).await;
        self.visit(&task).await;
    }

    /// Goes in and out until it is over.
    pub(crate) async fn again_and_again(self, task: Task) {
        self.wait_for(task.start).await;
        while !*task.is_over.borrow() {
            match self.visit(&task).await {
                Came::In => {}
                Came::NotIn => self.environment.sleep(self.environment.jitter(RETRY)).await,
                Came::Over => return,
            }
        }
    }

    async fn wait_for(&self, start: Moment) {
        self.environment.sleep(start.since(self.environment.now())).await;
    }

    async fn visit(&self, task: &Task) -> Came {
        let request = self.request(task);
        let called = self.environment.now();
        let Some(answer) = self.acquire(&request, task).await else {
            // A contender that only tries does not wait.
            if task.point.call == Call::GetLock {
                task.section.gave_up(called, self.environment.now());
            }
            self.give_back(&request).await;
            return Came::Over;
        };
        task.section.called();
        match answer {
            Ok(Some(_)) => {
                self.stay(task, called).await;
                self.give_back(&request).await;
                Came::In
            }
            Ok(None) => Came::NotIn,
            Err(error) => {
                task.section.failed(&error);
                self.give_back(&request).await;
                Came::NotIn
            }
        }
    }

    fn request(&self, task: &Task) -> Request {
        Request::new(
            task.key.clone(),
            AcquisitionId::new(&*self.environment),
            Mode::Write,
            Owner::from_bytes(self.environment.random_identity().to_be_bytes()),
            ClientName::default(),
            LEASE,
        )
        .with_patience(task.point.call.patience())
    }

    /// Returns the engine's answer, or nothing if the point was over first.
    async fn acquire(&self, request: &Request, task: &Task) -> Option<Result<Option<Grant>>> {
        let mut is_over = task.is_over.clone();
        // Ends also when the sender that could say so is gone.
        let over = pin!(is_over.wait_for(|&is_over| is_over));
        match select(self.engine.acquire(request), over).await {
            Either::Left((answer, _)) => Some(answer),
            Either::Right(_) => None,
        }
    }

    async fn stay(&self, task: &Task, called: Moment) {
        let entered = self.environment.now();
        let left = task.section.hold(&self.environment, task.point.hold()).await;
        task.section.visited(Visit { round: task.round, contender: self.number, called, entered, left });
    }

    async fn give_back(&self, request: &Request) {
        for _ in 0..RELEASES {
            if self.engine.release(&request.key, request.id, None).await.is_ok() {
                return;
            }
            self.environment.sleep(RELEASE_PAUSE).await;
        }
    }
}
