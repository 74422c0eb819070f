//! The connections between clients and members: what is sent on one arrives in order, or the connection breaks.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::oneshot;
use ylock_core::{Error, ErrorKind};
use ylock_engine_etcd::algorithm::store::{Fault, KeyEvent};

use super::cluster::{Members, nanos};
use super::event::{Ask, Event, Frame, Reply, Told};
use super::{ConnectionId, MemberId};
use crate::world::Actor;

/// The latest that a request arrives which its client gave up long since.
const LATEST: Duration = Duration::from_secs(60);

/// The answer to a request, or what came in its place.
pub(super) type Answer = Result<Reply, Fault>;

/// One connection.
pub(super) struct Wire {
    pub(super) member: MemberId,
    /// The client process that has made it.
    actor: Actor,
    /// True if nothing arrives any more. The two ends may not know it.
    is_broken: bool,
    /// True once the client knows that it has ended, or has ended it.
    is_left: bool,
    /// The moments at which the last message arrives, at the member and at the client; and at which the last watch has told of something.
    arrivals: [u64; 2],
    told: u64,
    /// Tells whether the member has taken the connection.
    accepted: Option<oneshot::Sender<()>>,
    asked: BTreeMap<u64, oneshot::Sender<Answer>>,
    watches: BTreeMap<i64, oneshot::Sender<KeyEvent>>,
}

#[derive(Clone, Copy)]
enum End {
    Member,
    Client,
}

impl Members {
    /// Opens a connection to a member. The receiver hears when the member has taken it.
    pub(super) fn dial(&mut self, member: MemberId, actor: Actor) -> (ConnectionId, oneshot::Receiver<()>) {
        let (accepted, is_accepted) = oneshot::channel();
        let connection = self.next_connection();
        let wire = Wire {
            member,
            actor,
            is_broken: false,
            is_left: false,
            arrivals: [0; 2],
            told: 0,
            accepted: Some(accepted),
            asked: BTreeMap::new(),
            watches: BTreeMap::new(),
        };
        self.wires.insert(connection, wire);
        self.send(connection, Frame::Dial);
        (connection, is_accepted)
    }

    /// Returns whether a client may use a connection.
    pub(super) fn is_usable(&self, connection: ConnectionId) -> bool {
        self.wires.get(&connection).is_some_and(|wire| !wire.is_left)
    }

    /// Sends a request. The receiver fails if the connection ends before its answer.
    pub(super) fn ask(&mut self, connection: ConnectionId, ask: Ask) -> oneshot::Receiver<Answer> {
        let (answer, is_answered) = oneshot::channel();
        let request = self.next_request();
        let Some(wire) = self.wires.get_mut(&connection).filter(|wire| !wire.is_left) else {
            // Nothing is sent.
            let refused = Error::new(ErrorKind::Unavailable, "the connection has ended");
            let _ = answer.send(Err(Fault::Refused(refused)));
            return is_answered;
        };
        wire.asked.insert(request, answer);
        let member = wire.member;
        if ask.writes() && self.chance.happens(self.weather.duplicates) {
            // As on a way that keeps what it was given, and brings it when no client waits for it any more. Nothing is brought twice.
            let late = self.chance.between(Duration::ZERO, LATEST);
            self.after(late, Event::Late(member, self.cluster, ask));
            return is_answered;
        }
        self.send(connection, Frame::Ask(request, ask));
        is_answered
    }

    /// Watches a key. The receivers hear when the member watches, and what the watch tells.
    pub(super) fn watch(
        &mut self,
        connection: ConnectionId,
        key: Vec<u8>,
        changes: bool,
    ) -> (i64, oneshot::Receiver<Answer>, oneshot::Receiver<KeyEvent>) {
        let (tell, told) = oneshot::channel();
        let number = i64::try_from(self.next_request()).unwrap_or(i64::MAX);
        if let Some(wire) = self.wires.get_mut(&connection) {
            wire.watches.insert(number, tell);
        }
        (number, self.ask(connection, Ask::Watch { number, key, changes }), told)
    }

    /// The client takes a watch back.
    pub(super) fn unwatch(&mut self, connection: ConnectionId, number: i64) {
        let Some(wire) = self.wires.get_mut(&connection).filter(|wire| !wire.is_left) else { return };
        // Also one that has told of something: the member goes on with it.
        drop(wire.watches.remove(&number));
        self.send(connection, Frame::Unwatch(number));
    }

    /// Sends something to the client.
    pub(super) fn tell(&mut self, connection: ConnectionId, told: Told) {
        self.carry(connection, End::Client, Event::ToClient(connection, told));
    }

    /// Tells what a watch has seen: late, but in order.
    pub(super) fn tell_of_watch(&mut self, connection: ConnectionId, number: i64, event: KeyEvent) {
        let lag = self.chance.between(Duration::ZERO, self.rules.lag);
        // One that was late when the history was compacted.
        let is_cancelled = lag > self.rules.lag / 2 && self.chance.happens(0.1);
        let now = self.now();
        let Some(wire) = self.wires.get_mut(&connection) else { return };
        wire.told = (now + nanos(lag)).max(wire.told);
        let delay = wire.told - now;
        let told = if is_cancelled { Told::Cancelled(number) } else { Told::Changed(number, event) };
        self.in_nanos(delay, Event::Tells(connection, told));
    }

    /// The client closes its end. What it has sent before still arrives.
    pub(super) fn hang_up(&mut self, connection: ConnectionId) {
        self.lose(connection);
        self.send(connection, Frame::HangsUp);
    }

    /// The connections of a process end, with the runtime that they were made in.
    pub(super) fn close_of(&mut self, actor: Actor) {
        let all: Vec<_> =
            self.wires.iter().filter(|(_, wire)| wire.actor == actor).map(|(&number, _)| number).collect();
        all.into_iter().for_each(|connection| self.hang_up(connection));
    }

    /// The client knows that a connection has ended: what it waits for over it does not come.
    fn lose(&mut self, connection: ConnectionId) {
        if let Some(wire) = self.wires.get_mut(&connection) {
            wire.is_left = true;
            // The receivers hear that their senders are gone.
            (wire.accepted, wire.asked, wire.watches) = (None, BTreeMap::new(), BTreeMap::new());
        }
    }

    fn send(&mut self, connection: ConnectionId, frame: Frame) {
        self.carry(connection, End::Member, Event::Arrives(connection, frame));
    }

    fn carry(&mut self, connection: ConnectionId, to: End, event: Event) {
        let breaks = self.chance.happens(self.weather.loss / 4.0);
        let is_noticed = breaks && self.chance.happens(0.5);
        let travel = self.weather.travel_in_order(&mut self.chance);
        let now = self.now();
        let Some(wire) = self.wires.get_mut(&connection).filter(|wire| !wire.is_broken) else { return };
        if !breaks {
            let arrives = &mut wire.arrivals[to as usize];
            *arrives = (now + travel).max(*arrives);
            let delay = *arrives - now;
            return self.in_nanos(delay, event);
        }
        wire.is_broken = true;
        self.world.note(|| format!("connection {connection} breaks"));
        if is_noticed {
            self.lose(connection);
            self.hung_up(connection);
        }
    }

    /// Brings something to the client, unless its end is closed.
    pub(super) fn delivers(&mut self, connection: ConnectionId, told: Told) {
        let Some(wire) = self.wires.get_mut(&connection).filter(|wire| !wire.is_broken && !wire.is_left)
        else {
            return;
        };
        // The receivers may be gone.
        match told {
            Told::Accepted => {
                if let Some(accepted) = wire.accepted.take() {
                    let _ = accepted.send(());
                }
            }
            Told::Answer(request, answer) => {
                if let Some(asked) = wire.asked.remove(&request) {
                    let _ = asked.send(answer);
                }
            }
            Told::Changed(number, event) => {
                if let Some(watch) = wire.watches.remove(&number) {
                    let _ = watch.send(event);
                }
            }
            Told::Cancelled(number) => drop(wire.watches.remove(&number)),
            Told::Closed => self.lose(connection),
        }
    }

    /// The member notices that the connection has ended.
    pub(super) fn hung_up(&mut self, connection: ConnectionId) {
        if let Some(wire) = self.wires.get_mut(&connection) {
            let member = wire.member;
            self.members[member].forget(connection);
            if wire.is_left {
                self.wires.remove(&connection);
            }
        }
    }

    /// The member's end is closed, of which the client hears or not.
    pub(super) fn closes_all(&mut self, member: MemberId, is_noticed: bool) {
        let all: Vec<_> = self.members[member].connections.iter().copied().collect();
        for connection in all {
            self.members[member].forget(connection);
            if is_noticed {
                self.tell(connection, Told::Closed);
            } else if let Some(wire) = self.wires.get_mut(&connection) {
                wire.is_broken = true;
            }
        }
    }
}
