//! How a server serves the clients that are connected to it.

use super::ensemble::Servers;
use super::event::{Body, Frame, Message, Origin, Reply, Word};
use super::server::{Role, Served};
use super::{ConnectionId, ServerId, SessionId};

impl Servers {
    /// A client connects: for a new session, or to go on with one, of which it has seen this transaction.
    pub(super) fn dialed(&mut self, connection: ConnectionId, session: Option<SessionId>, seen: u64) {
        let Some(server) = self.wires.get(&connection).map(|wire| wire.server) else { return };
        let state = &self.servers[server];
        if !state.serves() || state.tree.last() < seen {
            return self.refuses(connection);
        }
        // Older connections of the session end at once, before the leader is asked.
        if let Some(session) = session {
            self.closes_connections(server, session);
        }
        let served = Served::asking(session);
        self.servers[server].connections.insert(connection, served);
        match session {
            None => {
                let session = self.new_session();
                self.hands_on(Origin { server, connection, xid: 0 }, session, Body::Begin(session));
            }
            Some(session) if matches!(self.servers[server].role, Role::Leading(_)) => {
                let is_there = self.validates(server, server, session);
                self.validated(server, connection, session, is_there);
            }
            Some(session) => self.say_to_leader(server, Word::Validate(connection, session)),
        }
    }

    pub(super) fn arrives(&mut self, connection: ConnectionId, frame: Frame) {
        let Some(server) = self.wires.get(&connection).map(|wire| wire.server) else { return };
        let served = self.servers[server].connections.get(&connection);
        let Some(session) = served.and_then(|served| served.session) else { return };
        self.signs(server, session);
        let asks = self.servers[server].enqueue(connection, &frame);
        match frame {
            Frame::Write(xid, body) if asks => {
                self.hands_on(Origin { server, connection, xid }, session, body);
            }
            Frame::Sync(xid) if asks => match self.servers[server].role {
                // As a read, also beside what it has proposed and what it has not shown yet.
                Role::Leading(_) => self.servers[server].settle(connection, xid, Ok(Reply::Done)),
                _ => self.say_to_leader(server, Word::Sync(connection, xid)),
            },
            Frame::SetWatches(seen, watches) => {
                for message in self.servers[server].set_watches(connection, seen, watches) {
                    self.tell(connection, message);
                }
            }
            _ => {}
        }
        self.answers(server, connection);
    }

    /// Answers a client that wants to go on with a session.
    pub(super) fn validated(
        &mut self,
        server: ServerId,
        connection: ConnectionId,
        session: SessionId,
        is_there: bool,
    ) {
        if is_there {
            self.established(server, connection, session);
        } else {
            self.tell(connection, Message::Expired);
        }
    }

    pub(super) fn established(&mut self, server: ServerId, connection: ConnectionId, session: SessionId) {
        if let Some(served) = self.servers[server].connections.get_mut(&connection) {
            served.session = Some(session);
            self.tell(connection, Message::Established(session));
        }
    }

    pub(super) fn answers(&mut self, server: ServerId, connection: ConnectionId) {
        for message in self.servers[server].answers(connection) {
            self.tell(connection, message);
        }
    }
}
