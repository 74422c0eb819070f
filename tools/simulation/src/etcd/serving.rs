//! How a member serves the clients that are connected to it.

use std::sync::Arc;
use std::time::Duration;

use ylock_core::{Error, ErrorKind};
use ylock_engine_etcd::algorithm::store::{Fault, Granted, Outcome, Transaction};

use super::cluster::Members;
use super::data::{Applied, Carried};
use super::event::{Ask, Change, Event, Frame, Origin, Reply, Told, writes};
use super::member::{Role, Watch};
use super::wire::Answer;
use super::{ConnectionId, MemberId};

impl Members {
    pub(super) fn arrives(&mut self, connection: ConnectionId, frame: Frame) {
        let Some(member) = self.wires.get(&connection).map(|wire| wire.member) else { return };
        let state = &mut self.members[member];
        match frame {
            Frame::Dial if state.reach.is_up => {
                state.connections.insert(connection);
                self.tell(connection, Told::Accepted);
            }
            Frame::HangsUp => self.hung_up(connection),
            // To a member that is down, or was in between: the connection is none of its own.
            _ if !state.connections.contains(&connection) => self.tell(connection, Told::Closed),
            Frame::Ask(request, ask) => {
                let origin = Origin { member, connection, request };
                match state.role {
                    Role::Looking => self.answers(origin, Err(no_leader())),
                    _ => self.asked(origin, ask),
                }
            }
            Frame::Unwatch(number) => drop(state.watches.remove(&(connection, number))),
            Frame::Dial => {}
        }
    }

    fn asked(&mut self, origin: Origin, ask: Ask) {
        let member = origin.member;
        match ask {
            Ask::Transact(transaction) if !writes(&transaction) => self.waits(origin, transaction),
            Ask::Transact(transaction) => self.proposes(member, Change::Transact(transaction), Some(origin)),
            Ask::Grant(seconds) => {
                let lease = self.next_lease();
                self.proposes(member, Change::Grant(lease, seconds), Some(origin));
            }
            Ask::Revoke(lease) => self.proposes(member, Change::Revoke(lease), Some(origin)),
            Ask::KeepAlive(lease) => self.asked_to_prolong(origin, lease),
            // By another task than those that look: one that was asked for later may be answered before.
            Ask::Watch { number, key, changes } => {
                let delay = self.chance.between(Duration::ZERO, self.weather.latency.1);
                self.after(delay, Event::Watches(origin, number, Watch { key, changes }));
            }
        }
    }

    /// Begins to watch, from what the member shows now on.
    pub(super) fn watches(&mut self, origin: Origin, number: i64, watch: Watch) {
        let member = origin.member;
        if self.members[member].connections.contains(&origin.connection) {
            self.members[member].watches.insert((origin.connection, number), watch);
            let since = self.header(member).revision;
            self.answers(origin, Ok(Reply::Watches(since)));
        }
    }

    /// Does what was asked by a client that does not wait for it any more.
    pub(super) fn comes_late(&mut self, member: MemberId, ask: Ask) {
        if !self.members[member].reach.is_up {
            return;
        }
        // To a connection that there never was: nothing is answered.
        let origin = Origin { member, connection: 0, request: 0 };
        self.world.note(|| format!("member {member} gets a late request"));
        self.asked(origin, ask);
    }

    /// Answers a look with what the member shows.
    pub(super) fn shows(&mut self, origin: Origin, transaction: &Arc<Transaction>) {
        let carried = self.members[origin.member].data.read(transaction);
        self.carried(origin, carried);
    }

    /// Answers a request whose change was made.
    pub(super) fn applied(&mut self, origin: Origin, applied: Result<Applied, Fault>) {
        let header = self.header(origin.member);
        match applied {
            Ok(Applied::Carried(carried)) => self.carried(origin, carried),
            Ok(Applied::Granted(lease, seconds)) => {
                self.answers(origin, Ok(Reply::Granted(Granted { header, lease, seconds })));
            }
            Ok(Applied::Revoked) => self.answers(origin, Ok(Reply::Revoked)),
            Ok(Applied::Nothing) => {}
            Err(fault) => self.answers(origin, Err(fault)),
        }
    }

    fn carried(&mut self, origin: Origin, (held, done): Carried) {
        let header = self.header(origin.member);
        self.answers(origin, Ok(Reply::Carried(Outcome { header, held, done })));
    }

    /// Answers a client, unless its connection has ended.
    pub(super) fn answers(&mut self, origin: Origin, answer: Answer) {
        if self.members[origin.member].connections.contains(&origin.connection) {
            self.tell(origin.connection, Told::Answer(origin.request, answer));
        }
    }

    /// Ends the watches of clients that want none of a member without a leader.
    pub(super) fn ends_watches(&mut self, member: MemberId) {
        let watches = std::mem::take(&mut self.members[member].watches);
        for (connection, number) in watches.into_keys() {
            self.tell(connection, Told::Cancelled(number));
        }
    }
}

fn no_leader() -> Fault {
    Fault::Unknown(Error::new(ErrorKind::Unavailable, "the cluster has no leader"))
}

pub(super) fn leader_changed() -> Fault {
    Fault::Unknown(Error::new(ErrorKind::Unavailable, "the leader of the cluster has changed"))
}
