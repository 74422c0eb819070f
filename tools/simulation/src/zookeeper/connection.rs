//! The connections between clients and servers: what is sent on one arrives in order, or the connection breaks.

use std::sync::Arc;
use std::time::Duration;

use super::ensemble::Servers;
use super::event::{Event, Frame, Message};
use super::mailbox::{Incoming, Mailbox};
use super::{ConnectionId, ServerId, SessionId};

/// One connection.
pub(super) struct Wire {
    pub(super) server: ServerId,
    mailbox: Arc<Mailbox>,
    /// True if nothing arrives any more. The two ends may not know it.
    is_broken: bool,
    /// True if the server, or the client, has closed its end.
    is_closed: bool,
    is_left: bool,
    /// When the last message arrives, at the server and at the client.
    arrivals: [u64; 2],
}

#[derive(Clone, Copy)]
enum End {
    Server,
    Client,
}

impl Wire {
    pub(super) fn new(server: ServerId, mailbox: &Arc<Mailbox>) -> Self {
        let mailbox = Arc::clone(mailbox);
        Self { server, mailbox, is_broken: false, is_closed: false, is_left: false, arrivals: [0; 2] }
    }
}

impl Servers {
    /// Opens a connection to a server.
    pub(super) fn dial(
        &mut self,
        server: ServerId,
        mailbox: &Arc<Mailbox>,
        session: Option<SessionId>,
        seen: u64,
    ) -> ConnectionId {
        let connection = self.new_connection(server, mailbox);
        self.send(connection, End::Server, Event::Dial { connection, session, seen });
        connection
    }

    /// Sends something to the server.
    pub(super) fn ask(&mut self, connection: ConnectionId, frame: Frame) {
        self.send(connection, End::Server, Event::ToServer(connection, frame));
    }

    /// Sends something to the client.
    pub(super) fn tell(&mut self, connection: ConnectionId, message: Message) {
        self.send(connection, End::Client, Event::ToClient(connection, message));
    }

    /// The client closes its end. What it has sent before still arrives.
    pub(super) fn hang_up(&mut self, connection: ConnectionId) {
        if let Some(wire) = self.wires.get_mut(&connection) {
            wire.is_left = true;
        }
        self.send(connection, End::Server, Event::HangsUp(connection));
    }

    fn send(&mut self, connection: ConnectionId, to: End, event: Event) {
        let breaks = self.chance.happens(self.weather.loss / 4.0);
        let is_noticed = breaks && self.chance.happens(0.5);
        let travel = self.weather.travel_in_order(&mut self.chance);
        let now = self.now();
        let Some(wire) = self.wires.get_mut(&connection) else { return };
        if wire.is_broken {
            return;
        }
        if breaks {
            wire.is_broken = true;
            let mailbox = Arc::clone(&wire.mailbox);
            self.world.note(|| format!("connection {connection} breaks"));
            if is_noticed {
                mailbox.put(Incoming::Message(connection, Message::Closed));
                self.hung_up(connection);
            }
            return;
        }
        let arrives = &mut wire.arrivals[to as usize];
        *arrives = (now + travel).max(*arrives);
        let delay = *arrives - now;
        self.after(Duration::from_nanos(delay), event);
    }

    /// Brings something to the client, unless its end is closed.
    pub(super) fn delivers(&mut self, connection: ConnectionId, message: Message) {
        let Some(wire) = self.wires.get(&connection) else { return };
        if !wire.is_broken && !wire.is_left {
            wire.mailbox.put(Incoming::Message(connection, message));
        }
    }

    /// The server notices that the connection has ended.
    pub(super) fn hung_up(&mut self, connection: ConnectionId) {
        if let Some(wire) = self.wires.remove(&connection) {
            self.servers[wire.server].connections.remove(&connection);
        }
    }

    /// Says that there is nothing for this client here.
    pub(super) fn refuses(&mut self, connection: ConnectionId) {
        self.tell(connection, Message::Closed);
    }

    /// Closes the server's end. What it has sent before still arrives.
    pub(super) fn closes(&mut self, server: ServerId, connection: ConnectionId) {
        self.servers[server].connections.remove(&connection);
        let Some(wire) = self.wires.get_mut(&connection) else { return };
        if !wire.is_closed {
            wire.is_closed = true;
            self.tell(connection, Message::Closed);
        }
    }

    pub(super) fn closes_connections(&mut self, server: ServerId, session: SessionId) {
        for connection in self.servers[server].connections_of(session) {
            self.closes(server, connection);
        }
    }

    pub(super) fn closes_all(&mut self, server: ServerId) {
        let all: Vec<_> = self.servers[server].connections.keys().copied().collect();
        all.into_iter().for_each(|connection| self.closes(server, connection));
    }
}
