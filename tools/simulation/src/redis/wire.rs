//! The connections between clients and the server, as TCP has them: what is sent arrives in order, or the connection breaks, and the two ends
//! notice that or not.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::end::Inbox;
use super::server::{Arrival, Inner, Server};

/// A little less than a request may take.
const JUST_IN_TIME: Duration = Duration::from_millis(950);

/// One connection.
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) inbox: Arc<Inbox>,
    /// What has arrived at the server, and is no whole request yet.
    pub(super) unread: Vec<u8>,
    /// The channels to which the client has subscribed.
    pub(super) channels: BTreeSet<Vec<u8>>,
    /// True if the next request was sent on to this server by one that is giving the lock away to it.
    pub(super) is_asking: bool,
    /// True once the server knows of the connection.
    is_open: bool,
    /// True if nothing arrives any more. The two ends may not know it.
    is_broken: bool,
    /// True if the client has closed its end.
    is_left: bool,
    /// The moments at which the last bytes arrive, at the server and at the client.
    arrivals: [u64; 2],
}

#[derive(Clone, Copy, Debug)]
enum To {
    Server,
    Client,
}

impl Inner {
    /// Returns a new connection, of which the server does not know yet, and how long it takes until it does; `None` if the server is never
    /// reached.
    pub(super) fn open(&mut self, inbox: &Arc<Inbox>) -> (u64, Option<Duration>) {
        self.last_wire += 1;
        let wire = Wire {
            inbox: Arc::clone(inbox),
            unread: Vec::new(),
            channels: BTreeSet::new(),
            is_asking: false,
            is_open: false,
            is_broken: false,
            is_left: false,
            arrivals: [0; 2],
        };
        self.wires.insert(self.last_wire, wire);
        let is_lost = self.chance.happens(self.weather.loss / 2.0);
        let travel = self.travel() + self.travel();
        (self.last_wire, (!is_lost).then_some(travel))
    }

    /// Returns whether the server takes the connection.
    pub(super) fn accept(&mut self, number: u64) -> bool {
        let is_up = !self.is_down;
        match self.wires.get_mut(&number) {
            Some(wire) if is_up => wire.is_open = true,
            _ => drop(self.wires.remove(&number)),
        }
        is_up
    }

    fn travel(&mut self) -> Duration {
        let (least, most) = self.weather.latency;
        let (probability, slow) = self.weather.slow;
        // Everything behind a slow message is slow, too.
        let is_slow = self.chance.happens(probability / 4.0);
        // As long as a request may take, so that its answer is just in time: what counts from then counts too long.
        let is_just_in_time = self.chance.happens(probability);
        match (is_slow, is_just_in_time) {
            (true, _) => self.chance.between(most, slow),
            (false, true) => self.chance.between(most, JUST_IN_TIME),
            (false, false) => self.chance.between(least, most),
        }
    }

    /// Returns how long something takes that is sent now; `None` if it does not arrive.
    fn carry(&mut self, number: u64, to: To) -> Option<Duration> {
        let breaks = self.chance.happens(self.weather.loss / 4.0);
        let [client_notices, server_notices] = [self.chance.happens(0.5), self.chance.happens(0.5)];
        let travel = u64::try_from(self.travel().as_nanos()).unwrap_or(u64::MAX);
        let now = self.world.now();
        let wire = self.wires.get_mut(&number)?;
        if breaks && !wire.is_broken {
            wire.is_broken = true;
            self.world.note(|| format!("connection {number} breaks"));
            if client_notices {
                wire.inbox.reset();
            }
            if server_notices {
                self.wires.remove(&number);
            }
            return None;
        }
        if wire.is_broken {
            return None;
        }
        let arrives = &mut wire.arrivals[to as usize];
        *arrives = (now + travel).max(*arrives);
        Some(Duration::from_nanos(*arrives - now))
    }

    /// The server forgets a connection, of which the client hears if `is_told`.
    pub(super) fn close(&mut self, number: u64, is_told: bool) {
        if let Some(wire) = self.wires.remove(&number)
            && is_told
            && !wire.is_broken
        {
            wire.inbox.reset();
        }
    }

    pub(super) fn close_all(&mut self, is_told: bool) {
        let all: Vec<_> =
            self.wires.iter().filter(|(_, wire)| wire.is_open).map(|(&number, _)| number).collect();
        all.into_iter().for_each(|number| self.close(number, is_told));
    }

    /// Ends the connections that are broken: both ends notice it.
    pub(super) fn mend(&mut self) {
        self.wires.retain(|_, wire| {
            if wire.is_broken {
                wire.inbox.reset();
            }
            !wire.is_broken
        });
    }
}

impl Server {
    /// Sends something to the server.
    pub(super) fn send(self: &Arc<Self>, number: u64, bytes: Vec<u8>) {
        self.send_arrival(number, Arrival::Bytes(number, bytes));
    }

    /// The client closes its end. What it has sent before still arrives.
    pub(super) fn hang_up(self: &Arc<Self>, number: u64) {
        let is_first = {
            let mut inner = self.inner();
            inner.wires.get_mut(&number).is_some_and(|wire| !std::mem::replace(&mut wire.is_left, true))
        };
        if is_first {
            self.send_arrival(number, Arrival::HangUp(number));
        }
    }

    fn send_arrival(self: &Arc<Self>, number: u64, arrival: Arrival) {
        let Some(time) = self.inner().carry(number, To::Server) else { return };
        let server = Arc::clone(self);
        self.world.after(time, move || server.arrives(arrival));
    }

    /// Sends something to the client.
    pub(super) fn tell(self: &Arc<Self>, number: u64, bytes: Vec<u8>) {
        let mut inner = self.inner();
        let Some(time) = inner.carry(number, To::Client) else { return };
        let Some(inbox) = inner.wires.get(&number).map(|wire| Arc::clone(&wire.inbox)) else { return };
        drop(inner);
        let server = Arc::clone(self);
        self.world.after(time, move || {
            let is_whole =
                server.inner().wires.get(&number).is_none_or(|wire| !wire.is_broken && !wire.is_left);
            if is_whole {
                inbox.put(&bytes);
            }
        });
    }
}
