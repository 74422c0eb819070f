//! How a write is done: the leader proposes it, a majority takes it, and each server shows it when it hears of that.

use std::sync::Arc;

use ylock_engine_zookeeper::algorithm::store::Fault;

use super::ensemble::Servers;
use super::event::{Body, Origin, Reply, Transaction, Word, Work};
use super::server::Role;
use super::step::Edit;
use super::{ConnectionId, ServerId, SessionId};

impl Servers {
    /// Hands a write of a client on to the leader.
    pub(super) fn hands_on(&mut self, origin: Origin, session: SessionId, body: Body) {
        let server = origin.server;
        match self.servers[server].role {
            Role::Leading(_) => self.proposes(server, Some(origin), session, &body),
            Role::Following(_) => self.say_to_leader(server, Word::Request(origin, session, body)),
            Role::Looking => {}
        }
    }

    pub(super) fn proposes(
        &mut self,
        leader: ServerId,
        origin: Option<Origin>,
        session: SessionId,
        body: &Body,
    ) {
        let ends = self.ends(leader);
        let Some(leading) = self.leading(leader) else { return };
        let transaction = match origin {
            Some(origin) => leading.request(origin, session, body, ends),
            None => leading.expire(session),
        };
        if let Body::Begin(session) = body {
            self.watch_session(leader, *session);
        }
        self.propose(leader, transaction);
    }

    pub(super) fn propose(&mut self, leader: ServerId, transaction: Transaction) {
        let transaction = Arc::new(transaction);
        self.world.note(|| format!("server {leader} proposes {transaction}"));
        self.servers[leader].log.push(Arc::clone(&transaction));
        self.tell_followers(leader, &Word::Propose(transaction));
        self.commits(leader);
    }

    /// Does what a majority has.
    pub(super) fn commits(&mut self, leader: ServerId) {
        let (own, servers) = (self.servers[leader].log.len(), self.servers.len());
        let Some(leading) = self.leading(leader) else { return };
        let done = leading.done(own, servers);
        if done > leading.committed {
            leading.committed = done;
            self.tell_followers(leader, &Word::Commit(done));
            self.answers_syncs(leader);
            self.later(leader, Work::Commit(done));
        }
    }

    /// Shows so many transactions, tells the watches, and answers those that asked.
    pub(super) fn applies(&mut self, server: ServerId, count: usize) {
        while let Some((transaction, changes)) = self.servers[server].apply_next(count) {
            for (connection, message) in self.servers[server].fire(transaction.zxid, &changes) {
                self.tell(connection, message);
            }
            if let Some((origin, answer)) = transaction.answer_at(server) {
                match transaction.edits[..] {
                    _ if transaction.has_moved => self.closes(server, origin.connection),
                    [Edit::Begin(session)] => self.established(server, origin.connection, session),
                    _ => self.settles(server, origin.connection, origin.xid, answer),
                }
            }
            if let Some(session) = transaction.ends {
                self.closes_connections(server, session);
            }
        }
    }

    /// Answers a request, and those behind it that waited for it.
    pub(super) fn settles(
        &mut self,
        server: ServerId,
        connection: ConnectionId,
        xid: u64,
        answer: Result<Reply, Fault>,
    ) {
        self.servers[server].settle(connection, xid, answer);
        self.answers(server, connection);
    }

    /// Answers a follower when everything is done that was proposed until now. A leader that has lost the others does not know it.
    pub(super) fn asked_to_sync(
        &mut self,
        leader: ServerId,
        from: ServerId,
        connection: ConnectionId,
        xid: u64,
    ) {
        let proposed = self.servers[leader].log.len();
        if let Some(leading) = self.leading(leader) {
            leading.syncs.push((proposed, from, connection, xid));
        }
        self.answers_syncs(leader);
    }

    pub(super) fn answers_syncs(&mut self, leader: ServerId) {
        let Some(leading) = self.leading(leader) else { return };
        let committed = leading.committed;
        let (due, later) = leading.syncs.drain(..).partition(|(count, ..)| *count <= committed);
        leading.syncs = later;
        let due: Vec<(usize, ServerId, ConnectionId, u64)> = due;
        for (_, follower, connection, xid) in due {
            self.answer_follower(leader, follower, Word::Synced(connection, xid));
        }
    }
}
