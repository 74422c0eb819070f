//! How the driver serves the algorithm over one connection.

use std::sync::Arc;

use tokio::sync::oneshot;
use ylock_core::environment::Environment;
use ylock_engine_zookeeper::algorithm::store::{Fault, WatchEvent};

use super::{Ask, Driver, Request, Served};
use crate::zookeeper::event::{Body, Frame, Message, Read, Reply};
use crate::zookeeper::line::State;
use crate::zookeeper::mailbox::Incoming;
use crate::zookeeper::tree::{Change, On};

impl Driver {
    /// Serves the algorithm over one connection.
    pub(super) async fn serve(&mut self) -> Served {
        self.flush();
        loop {
            let served = match self.next().await {
                Some(Incoming::Request(request)) => {
                    self.unsent.push_back(request);
                    self.flush();
                    None
                }
                Some(Incoming::Message(from, message)) if Some(from) == self.connection => {
                    self.hears(message)
                }
                Some(Incoming::Message(..) | Incoming::Look) => None,
                None => self.ticks(),
            };
            if self.is_stopped() {
                return Served::Stopped;
            }
            match served.or_else(|| self.says_farewell()) {
                Some(Served::Lost) => {
                    self.lose();
                    return Served::Lost;
                }
                Some(served) => return served,
                None => {}
            }
        }
    }

    pub(super) fn ticks(&mut self) -> Option<Served> {
        if self.is_silent() {
            self.note(|| "gives up a connection".to_owned());
            return Some(Served::Lost);
        }
        let now = self.clocks.now();
        if !self.is_pinging && now >= self.last_sent.plus(self.timeout * 3 / 20) {
            (self.is_pinging, self.last_sent) = (true, now);
            self.ask(Frame::Ping);
        }
        None
    }

    /// Tells the servers that the session is over, if that is due.
    pub(super) fn says_farewell(&mut self) -> Option<Served> {
        let State::Over(then) = self.line.state() else { return None };
        if self.farewell.is_none() && then <= self.clocks.now() {
            self.farewell = Some(self.send(|xid| Frame::Write(xid, Body::Close), None));
        }
        None
    }

    pub(super) fn hears(&mut self, message: Message) -> Option<Served> {
        self.received = self.clocks.now();
        match message {
            Message::Answer(xid, seen, answer) => return self.answered(xid, seen, answer),
            Message::Pong => self.is_pinging = false,
            Message::Changed(path, change, zxid) => {
                let was_seen = zxid.is_some() || self.mistakes.believes_outcomes;
                self.changed(&path, change, was_seen);
            }
            Message::Closed if self.farewell.is_some() => return Some(Served::Over),
            Message::Closed => return Some(Served::Lost),
            Message::Expired => return Some(Served::Over),
            Message::Established(_) => {}
        }
        None
    }

    pub(super) fn answered(&mut self, xid: u64, seen: u64, answer: Result<Reply, Fault>) -> Option<Served> {
        self.seen = self.seen.max(seen);
        if self.farewell == Some(xid) || matches!(answer, Err(Fault::Ended(_))) {
            return Some(Served::Over);
        }
        let first = self.sent.pop_front()?;
        debug_assert_eq!(first.0, xid, "answers come in order");
        let Request { ask, answer: to } = first.1;
        let answer = answer.map(|reply| {
            let told = self.watch(&ask);
            (reply, told)
        });
        // The caller may not wait any more.
        let _ = to.send(answer);
        None
    }

    pub(super) fn watch(&mut self, ask: &Ask) -> Option<WatchEvent> {
        let Ask::Read(Read::Names(path) | Read::Node(path), Some(on)) = ask else { return None };
        let (fires, told) = oneshot::channel();
        self.watches.entry((path.as_str().into(), *on)).or_default().push(fires);
        Some(Box::pin(async move { told.await.unwrap_or(false) }))
    }

    pub(super) fn changed(&mut self, path: &Arc<str>, change: Change, was_seen: bool) {
        for on in [On::Node, On::Children] {
            if change.fires(on) {
                let watches = self.watches.remove(&(Arc::clone(path), on)).unwrap_or_default();
                for told in watches {
                    let _ = told.send(change == Change::Removed && was_seen);
                }
            }
        }
    }

    /// Sets the watches of the last connection again.
    pub(super) fn set_watches(&mut self) {
        self.watches.retain(|_, watches| {
            watches.retain(|told| !told.is_closed());
            !watches.is_empty()
        });
        if !self.watches.is_empty() {
            let watches = self.watches.keys().cloned().collect();
            self.ask(Frame::SetWatches(self.seen, watches));
        }
    }

    /// Sends what was asked, in order.
    pub(super) fn flush(&mut self) {
        while let Some(request) = self.unsent.pop_front() {
            let ask = request.ask.clone();
            self.note(|| format!("sends {ask}"));
            let frame = |xid| match ask {
                Ask::Write(body) => Frame::Write(xid, body),
                Ask::Read(read, on) => Frame::Read(xid, read, on),
                Ask::Sync => Frame::Sync(xid),
            };
            self.send(frame, Some(request));
        }
    }
}
