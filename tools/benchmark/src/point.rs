//! Plays one point: the same code on the real cluster and in the simulation.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Result;
use futures_util::future::{Either, select};
use tokio::sync::{mpsc, watch};
use ylock_core::Key;
use ylock_core::environment::{BoxFuture, Environment, Moment};

use crate::budget::Budget;
use crate::contender::{Contender, Task};
use crate::critical_section::{CriticalSection, Log};
use crate::matrix::{Names, Point};
use crate::record::{Played, Record, Round};

/// The time from starting the contenders to the moment at which they begin: all of them are there by then.
const LEAD: Duration = Duration::from_millis(50);
/// The interval at which it is checked whether it is enough.
const TICK: Duration = Duration::from_millis(5);

/// The contenders of a point, and what they share.
#[derive(Debug)]
pub(crate) struct Party {
    pub(crate) contenders: Vec<Contender>,
    pub(crate) environment: Arc<dyn Environment>,
    /// The number of requests that all of them sent to the store.
    pub(crate) requests: Arc<AtomicU64>,
    /// A group of names that no other point uses.
    pub(crate) group: String,
}

/// Plays a point to its end.
pub(crate) async fn play(party: Party, point: Point, budget: Budget) -> Result<Record> {
    let game = Game { party, point, budget, section: Arc::default() };
    let played = match point.names {
        Names::Fresh => game.fresh().await?,
        Names::Hot => game.hot().await?,
    };
    Ok(Record::of(point, &game.section, played))
}

struct Game {
    party: Party,
    point: Point,
    budget: Budget,
    section: Arc<CriticalSection>,
}

impl Game {
    /// Plays one round after the other, each with a name of its own.
    async fn fresh(&self) -> Result<Played> {
        let began = self.now();
        let (mut rounds, mut log, mut requests, mut calls) = (Vec::new(), Log::default(), 0, 0);
        while rounds.is_empty() || (rounds.len() < self.budget.rounds as usize && self.is_within(began)) {
            let number = rounds.len() as u32;
            let (start, mut crew) = self.send(&format!("round-{number}"), number, Contender::once)?;
            crew.work(start.plus(self.budget.round), || self.is_enough(0, 0)).await;
            // A round that did not fail but was ended says nothing; the first one is all there is.
            let is_cut = crew.is_working() && self.is_enough(0, 0) && !rounds.is_empty();
            crew.end().await;
            if is_cut {
                break;
            }
            rounds.push(Round { start, end: self.now() });
            log.append(self.section.take_log());
            (requests, calls) = (self.requests(), self.section.calls());
        }
        Ok(Played { rounds, requests, calls, log })
    }

    /// Plays at one name; what counts begins after a while.
    async fn hot(&self) -> Result<Played> {
        let (start, mut crew) = self.send("hot", 0, Contender::again_and_again)?;
        let warm = || {
            let is_used_up = self.requests() >= self.budget.requests / 4;
            self.section.entries() >= self.budget.warm_up_grants || is_used_up
        };
        crew.work(start.plus(self.budget.warm_up), warm).await;
        let (start, requests, calls) = (self.now(), self.requests(), self.section.calls());
        let entries = self.section.entries();
        crew.work(start.plus(self.budget.time), || self.is_enough(entries, requests)).await;
        let (end, requests) = (self.now(), self.requests() - requests);
        let calls = self.section.calls() - calls;
        crew.end().await;
        Ok(Played { rounds: vec![Round { start, end }], requests, calls, log: self.section.take_log() })
    }

    /// Starts all contenders.
    fn send<F>(&self, name: &str, round: u32, work: impl Fn(Contender, Task) -> F) -> Result<(Moment, Crew)>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (over, is_over) = watch::channel(false);
        let (working, done) = mpsc::channel(1);
        let start = self.now().plus(LEAD);
        let (section, key) = (Arc::clone(&self.section), Key::new(&*self.party.group, name)?);
        let task = Task { point: self.point, section, key, round, start, is_over };
        for contender in &self.party.contenders {
            let environment = Arc::clone(&contender.environment);
            let future = work(contender.clone(), task.clone());
            environment.spawn(until_dropped(future, working.clone()));
        }
        Ok((start, Crew { environment: Arc::clone(&self.party.environment), over, done }))
    }

    fn is_within(&self, began: Moment) -> bool {
        self.now().since(began) < self.budget.time
    }

    /// Returns whether enough has happened since there were so many entries and requests.
    fn is_enough(&self, entries: u64, requests: u64) -> bool {
        self.section.entries() - entries >= self.budget.grants
            || self.requests() - requests >= self.budget.requests
    }

    fn requests(&self) -> u64 {
        self.party.requests.load(Ordering::Relaxed)
    }

    fn now(&self) -> Moment {
        self.party.environment.now()
    }
}

/// Returns the future, which is known to be working until it is dropped, however that comes.
fn until_dropped(future: impl Future<Output = ()> + Send + 'static, working: mpsc::Sender<()>) -> BoxFuture {
    Box::pin(async move {
        future.await;
        drop(working);
    })
}

/// Contenders at work.
struct Crew {
    environment: Arc<dyn Environment>,
    over: watch::Sender<bool>,
    /// Closed when no contender works any more.
    done: mpsc::Receiver<()>,
}

impl Crew {
    /// Lets them work until all are done, until it is enough, or until this moment.
    async fn work(&mut self, until: Moment, is_enough: impl Fn() -> bool) {
        while !is_enough() && self.environment.now() < until {
            match select(pin!(self.done.recv()), self.environment.sleep(TICK)).await {
                Either::Left(_) => return,
                Either::Right(_) => {}
            }
        }
    }

    /// Returns whether a contender has not come to an end by itself.
    fn is_working(&self) -> bool {
        !self.done.is_closed()
    }

    /// Ends the waits of contenders that still wait, and returns when all have given back.
    async fn end(mut self) {
        self.over.send_replace(true);
        while self.done.recv().await.is_some() {}
    }
}
