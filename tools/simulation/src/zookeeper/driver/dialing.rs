//! How the driver connects: to one server after the other.

use std::time::Duration;

use ylock_core::environment::{Environment, Moment};

use super::{Dialed, Driver};
use crate::zookeeper::ServerId;
use crate::zookeeper::event::Message;
use crate::zookeeper::line::Known;
use crate::zookeeper::mailbox::Incoming;

/// The pause after an attempt at all servers that has led to no session.
const PAUSE: Duration = Duration::from_millis(200);

impl Driver {
    /// Begins a session, unless it is not wanted any more.
    pub(super) async fn begin(&mut self) -> Option<Known> {
        loop {
            let asked = self.clocks.now();
            match self.dial_all().await {
                Dialed::Established(session) => {
                    self.known = Some(Known { session, timeout: self.timeout, asked });
                    return self.known;
                }
                Dialed::Stopped => return None,
                Dialed::Failed | Dialed::Expired => {
                    if !self.rest(self.clocks.now().plus(PAUSE)).await {
                        return None;
                    }
                }
            }
        }
    }

    /// Looks for a server until the session has ended for sure.
    pub(super) async fn reconnect(&mut self) -> Dialed {
        let deadline = self.received.plus(self.timeout * 7 / 5);
        let mut pause = Duration::from_millis(300);
        loop {
            match self.dial_all().await {
                Dialed::Failed if self.clocks.now() >= deadline => return Dialed::Expired,
                Dialed::Failed => {
                    if !self.rest(self.clocks.now().plus(pause).min(deadline)).await {
                        return Dialed::Stopped;
                    }
                    pause *= 2;
                }
                other => return other,
            }
        }
    }

    /// Waits, and collects what is asked meanwhile. Returns whether the session is still wanted.
    pub(super) async fn rest(&mut self, until: Moment) -> bool {
        while self.clocks.now() < until && !self.is_stopped() {
            match self.next().await {
                Some(Incoming::Request(request)) => self.unsent.push_back(request),
                Some(Incoming::Message(..) | Incoming::Look) | None => {}
            }
        }
        !self.is_stopped()
    }

    /// Returns whether there is nothing to be done: also for a session that is over and has never begun.
    pub(super) fn is_stopped(&self) -> bool {
        self.known.is_none() && self.line.is_over()
    }

    /// Tries one server after the other.
    pub(super) async fn dial_all(&mut self) -> Dialed {
        for server in self.order() {
            match self.dial(server).await {
                Dialed::Failed => {}
                other => return other,
            }
        }
        Dialed::Failed
    }

    pub(super) fn order(&mut self) -> Vec<ServerId> {
        let mut left: Vec<_> = (0..self.ensemble.size()).collect();
        let mut order = Vec::new();
        while !left.is_empty() {
            order.push(left.swap_remove(self.chance.below(left.len() as u64) as usize));
        }
        order
    }

    pub(super) async fn dial(&mut self, server: ServerId) -> Dialed {
        self.hang_up();
        let session = self.known.map(|known| known.session);
        let (mailbox, seen) = (&self.line.mailbox, self.seen);
        let connection = self.ensemble.with(|servers| servers.dial(server, mailbox, session, seen));
        self.connection = Some(connection);
        self.received = self.clocks.now();
        loop {
            match self.next().await {
                Some(Incoming::Message(from, message)) if from == connection => match message {
                    Message::Established(session) => {
                        let now = self.clocks.now();
                        (self.received, self.last_sent, self.is_pinging) = (now, now, false);
                        self.note(|| format!("has session {session} at server {server}"));
                        return Dialed::Established(session);
                    }
                    Message::Expired => return Dialed::Expired,
                    _ => return Dialed::Failed,
                },
                Some(Incoming::Request(request)) => self.unsent.push_back(request),
                Some(Incoming::Message(..) | Incoming::Look) | None => {}
            }
            if self.is_stopped() {
                return Dialed::Stopped;
            }
            if self.is_silent() {
                return Dialed::Failed;
            }
        }
    }

    pub(super) fn is_silent(&self) -> bool {
        self.clocks.now() >= self.received.plus(self.timeout * 2 / 5)
    }
}
