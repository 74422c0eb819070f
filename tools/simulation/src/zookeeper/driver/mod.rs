//! The driver of a session, with the times of the crate `zookeeper-client`: it gives up a connection on which nothing was heard for two
//! fifths of the session, pings when it has sent nothing for three twentieths, and the session when it has found no server for seven fifths.

mod dialing;
mod serving;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::sync::oneshot;
use ylock_core::environment::{BoxFuture, Environment, Moment};
use ylock_engine_zookeeper::algorithm::store::{Fault, WatchEvent};

use crate::chance::Chance;
use crate::clocks::Clocks;
use crate::zookeeper::ensemble::Ensemble;
use crate::zookeeper::event::{Body, Frame, Read, Reply};
use crate::zookeeper::leader::ended;
use crate::zookeeper::line::{Known, Line};
use crate::zookeeper::mailbox::Incoming;
use crate::zookeeper::tree::On;
use crate::zookeeper::{ConnectionId, SessionId};

/// What the algorithm asks of the driver.
pub(in crate::zookeeper) struct Request {
    pub(in crate::zookeeper) ask: Ask,
    pub(in crate::zookeeper) answer: oneshot::Sender<Result<(Reply, Option<WatchEvent>), Fault>>,
}

#[derive(Clone, Debug)]
pub(in crate::zookeeper) enum Ask {
    Write(Body),
    Read(Read, Option<On>),
    Sync,
}

/// As the trace shows it.
impl fmt::Display for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write(body) => write!(f, "{body}"),
            Self::Read(read, on) => write!(f, "{read:?} {on:?}"),
            Self::Sync => f.write_str("sync"),
        }
    }
}

/// Mistakes that a driver can make.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mistakes {
    /// What has changed while there was no connection is told like what was seen.
    pub believes_outcomes: bool,
}

/// The driver; see the [module](self).
pub(in crate::zookeeper) struct Driver {
    ensemble: Arc<Ensemble>,
    line: Arc<Line>,
    clocks: Arc<Clocks>,
    chance: Chance,
    mistakes: Mistakes,
    /// The timeout of the session.
    timeout: Duration,
    known: Option<Known>,
    connection: Option<ConnectionId>,
    /// The last transaction that an answer has shown.
    seen: u64,
    xid: u64,
    unsent: VecDeque<Request>,
    sent: VecDeque<(u64, Request)>,
    watches: BTreeMap<(Arc<str>, On), Vec<oneshot::Sender<bool>>>,
    received: Moment,
    last_sent: Moment,
    is_pinging: bool,
    /// The request that tells the servers that the session is over.
    farewell: Option<u64>,
    tick: BoxFuture,
}

/// The outcome of an attempt to connect.
pub(super) enum Dialed {
    Established(SessionId),
    Expired,
    Failed,
    /// The session is not wanted any more.
    Stopped,
}

/// The end of a connection.
#[derive(PartialEq, Eq)]
pub(super) enum Served {
    Lost,
    /// The servers have been told that the session is over, or have said so.
    Over,
    Stopped,
}

impl Driver {
    pub(in crate::zookeeper) fn new(
        ensemble: &Arc<Ensemble>,
        line: &Arc<Line>,
        clocks: &Arc<Clocks>,
        timeout: Duration,
        mistakes: Mistakes,
    ) -> Self {
        let now = clocks.now();
        Self {
            ensemble: Arc::clone(ensemble),
            line: Arc::clone(line),
            clocks: Arc::clone(clocks),
            chance: Chance::new(clocks.random()),
            mistakes,
            timeout,
            known: None,
            connection: None,
            seen: 0,
            xid: 0,
            unsent: VecDeque::new(),
            sent: VecDeque::new(),
            watches: BTreeMap::new(),
            received: now,
            last_sent: now,
            is_pinging: false,
            farewell: None,
            tick: clocks.sleep(timeout / 20),
        }
    }

    pub(in crate::zookeeper) async fn run(mut self) {
        let Some(known) = self.begin().await else { return };
        self.line.lives(known);
        loop {
            match self.serve().await {
                Served::Over => return self.over(),
                Served::Stopped => return,
                Served::Lost => match self.reconnect().await {
                    Dialed::Established(_) => self.set_watches(),
                    Dialed::Expired | Dialed::Failed => return self.over(),
                    Dialed::Stopped => return,
                },
            }
        }
    }

    /// Ends the session for this client.
    fn over(&mut self) {
        self.line.end(Moment::ZERO);
        let sent = self.sent.drain(..).map(|(_, request)| request);
        for request in sent.chain(self.unsent.drain(..)) {
            let _ = request.answer.send(Err(ended()));
        }
    }

    fn send(&mut self, frame: impl FnOnce(u64) -> Frame, request: Option<Request>) -> u64 {
        self.xid += 1;
        let frame = frame(self.xid);
        // The driver's own are known by their numbers.
        self.sent.extend(request.map(|request| (self.xid, request)));
        self.last_sent = self.clocks.now();
        self.ask(frame);
        self.xid
    }

    fn ask(&self, frame: Frame) {
        if let Some(connection) = self.connection {
            self.ensemble.with(|servers| servers.ask(connection, frame));
        }
    }

    /// Gives a connection up. It is not known what became of the requests that were not answered.
    fn lose(&mut self) {
        self.hang_up();
        self.farewell = None;
        for (_, request) in self.sent.drain(..) {
            let _ = request.answer.send(Err(Fault::ConnectionLoss));
        }
    }

    fn hang_up(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.ensemble.with(|servers| servers.hang_up(connection));
        }
    }

    /// Returns what comes next; nothing when it is time to look at the clock. If both have come while the process did not run, chance
    /// decides what the driver sees first.
    async fn next(&mut self) -> Option<Incoming> {
        let tick_first = self.chance.happens(0.5);
        let (tick, mailbox) = (&mut self.tick, Arc::clone(&self.line.mailbox));
        let next = poll_fn(|context| {
            if tick_first && tick.as_mut().poll(context).is_ready() {
                return Poll::Ready(None);
            }
            if let Some(incoming) = mailbox.take(context) {
                return Poll::Ready(Some(incoming));
            }
            if !tick_first && tick.as_mut().poll(context).is_ready() {
                return Poll::Ready(None);
            }
            Poll::Pending
        });
        let next = next.await;
        if next.is_none() {
            self.tick = self.clocks.sleep(self.timeout / 20);
        }
        next
    }

    fn note(&self, line: impl FnOnce() -> String) {
        self.ensemble.note(|| format!("{:?} {}", self.clocks.actor(), line()));
    }
}

impl Drop for Driver {
    /// The system closes the connection of a process that is killed.
    fn drop(&mut self) {
        self.hang_up();
    }
}
