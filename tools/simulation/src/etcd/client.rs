//! A client's end: one connection to one member at a time, as the engine's driver has it. It goes on to the next member when an answer does not come,
//! and sends nothing twice.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use parking_lot::Mutex;
use tokio::sync::oneshot;
use ylock_core::environment::Environment;
use ylock_core::{Error, ErrorKind};
use ylock_engine_etcd::algorithm::store::{Fault, Granted, Outcome, Pending, Store, Transaction, Watching};

use super::cluster::Cluster;
use super::event::{Ask, Reply};
use super::wire::Answer;
use super::{ConnectionId, LeaseId, MemberId};
use crate::clocks::Clocks;

/// Mistakes that a driver can make.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mistakes {
    /// A lease that there is already is prolonged, where another one is asked for that lives as long.
    pub prolongs_leases: bool,
}

/// A client's way to the cluster; see the [module](self).
pub struct Client {
    cluster: Arc<Cluster>,
    clocks: Arc<Clocks>,
    request_timeout: Duration,
    mistakes: Mistakes,
    slot: Mutex<Slot>,
    /// The last lease of each time to live.
    leases: Mutex<BTreeMap<i64, LeaseId>>,
}

/// The connection, if there is one, and the member to try first for the next.
struct Slot {
    connection: Option<ConnectionId>,
    member: MemberId,
}

/// A connection that is being made: ended, unless it is used.
struct Dialing {
    cluster: Arc<Cluster>,
    connection: Option<ConnectionId>,
}

impl Drop for Dialing {
    fn drop(&mut self) {
        if let Some(connection) = self.connection {
            self.cluster.with(|members| members.hang_up(connection));
        }
    }
}

/// A watch, which is taken back when this is dropped.
struct Guard {
    cluster: Arc<Cluster>,
    connection: ConnectionId,
    number: i64,
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.cluster.with(|members| members.unwatch(self.connection, self.number));
    }
}

impl Client {
    /// Creates the way of one client.
    pub fn new(
        cluster: &Arc<Cluster>,
        clocks: &Arc<Clocks>,
        request_timeout: Duration,
        mistakes: Mistakes,
    ) -> Self {
        let member = clocks.random() as usize % cluster.size();
        let slot = Mutex::new(Slot { connection: None, member });
        Self {
            cluster: Arc::clone(cluster),
            clocks: Arc::clone(clocks),
            request_timeout,
            mistakes,
            slot,
            leases: Mutex::default(),
        }
    }

    fn usable(&self) -> Option<ConnectionId> {
        let known = self.slot.lock().connection;
        known.filter(|connection| self.cluster.with(|members| members.is_usable(*connection)))
    }

    /// Returns the connection, or makes one, within the time of a request.
    async fn live(&self) -> Result<ConnectionId, Fault> {
        if let Some(connection) = self.usable() {
            return Ok(connection);
        }
        let connecting = Box::pin(self.connect());
        match select(connecting, self.clocks.sleep(self.request_timeout)).await {
            Either::Left((connected, _)) => connected,
            Either::Right(_) => Err(refused("no member of the cluster can be reached")),
        }
    }

    /// Tries one member after the other.
    async fn connect(&self) -> Result<ConnectionId, Fault> {
        let (first, count) = (self.slot.lock().member, self.cluster.size());
        for member in (0..count).map(|at| (first + at) % count) {
            let (connection, accepted) =
                self.cluster.with(|members| members.dial(member, self.clocks.actor()));
            let mut dialing = Dialing { cluster: Arc::clone(&self.cluster), connection: Some(connection) };
            let patience = self.clocks.sleep(self.request_timeout / 2);
            if !matches!(select(accepted, patience).await, Either::Left((Ok(()), _))) {
                continue;
            }
            // Another request may have connected meanwhile.
            if let Some(other) = self.usable() {
                return Ok(other);
            }
            dialing.connection = None;
            *self.slot.lock() = Slot { connection: Some(connection), member };
            self.cluster.note(|| format!("{:?} is connected to member {member}", self.clocks.actor()));
            return Ok(connection);
        }
        Err(refused("no member of the cluster can be reached"))
    }

    /// Gives a connection up, to go on with the next member.
    fn give_up(&self, connection: ConnectionId) {
        {
            let mut slot = self.slot.lock();
            if slot.connection == Some(connection) {
                *slot = Slot { connection: None, member: (slot.member + 1) % self.cluster.size() };
            }
        }
        self.cluster.with(|members| members.hang_up(connection));
    }

    async fn ask(&self, ask: Ask) -> Answer {
        let connection = self.live().await?;
        self.await_answer(connection, self.cluster.with(|members| members.ask(connection, ask))).await
    }

    async fn await_answer(&self, connection: ConnectionId, answer: oneshot::Receiver<Answer>) -> Answer {
        let result = match select(answer, self.clocks.sleep(self.request_timeout)).await {
            // An answer that is there counts, also after a pause of the process.
            Either::Left((Ok(answer), _)) => answer,
            Either::Left((Err(_), _)) => Err(unknown("the connection has ended")),
            Either::Right(_) => Err(unknown("the server did not answer in time")),
        };
        if let Err(Fault::Unknown(error) | Fault::Refused(error)) = &result
            && error.kind() == ErrorKind::Unavailable
        {
            self.give_up(connection);
        }
        result
    }
}

impl Store for Client {
    fn transact(&self, transaction: Transaction) -> Pending<'_, Outcome> {
        Box::pin(async move {
            match self.ask(Ask::Transact(Arc::new(transaction))).await? {
                Reply::Carried(outcome) => Ok(outcome),
                _ => unreachable!("a transaction is answered by its outcome"),
            }
        })
    }

    fn grant(&self, seconds: i64) -> Pending<'_, Granted> {
        Box::pin(async move {
            let known = self.leases.lock().get(&seconds).copied().filter(|_| self.mistakes.prolongs_leases);
            if let Some(lease) = known
                && let Reply::Granted(prolonged) = self.ask(Ask::KeepAlive(lease)).await?
                && prolonged.seconds > 0
            {
                return Ok(prolonged);
            }
            let Reply::Granted(granted) = self.ask(Ask::Grant(seconds)).await? else {
                unreachable!("a lease is answered by a lease")
            };
            self.leases.lock().insert(seconds, granted.lease);
            Ok(granted)
        })
    }

    fn revoke(&self, lease: i64) -> Pending<'_, ()> {
        Box::pin(async move {
            match self.ask(Ask::Revoke(lease)).await {
                Ok(_) | Err(Fault::LeaseGone) => Ok(()),
                Err(fault) => Err(fault),
            }
        })
    }

    fn watch(&self, key: Vec<u8>, changes: bool) -> Pending<'_, Watching> {
        Box::pin(async move {
            let connection = self.live().await?;
            let (number, created, told) =
                self.cluster.with(|members| members.watch(connection, key, changes));
            let guard = Guard { cluster: Arc::clone(&self.cluster), connection, number };
            match self.await_answer(connection, created).await? {
                Reply::Watches(since) => Ok(Watching { since, told, guard: Box::new(guard) }),
                _ => unreachable!("a watch is answered by its beginning"),
            }
        })
    }
}

impl Drop for Client {
    /// The system closes the connection of a process that ends.
    fn drop(&mut self) {
        if let Some(connection) = self.slot.lock().connection.take() {
            self.cluster.with(|members| members.hang_up(connection));
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Client")
    }
}

fn refused(message: &'static str) -> Fault {
    Fault::Refused(Error::new(ErrorKind::Unavailable, message))
}

fn unknown(message: &'static str) -> Fault {
    Fault::Unknown(Error::new(ErrorKind::Unavailable, message))
}
