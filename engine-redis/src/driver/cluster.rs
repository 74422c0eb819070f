//! The servers of a cluster: each keeps a part of the locks.
//!
//! The driver has a client for clusters, which sends a request again by itself when its outcome is unknown. The engine could not tell then
//! that a copy of the request may still arrive, and do something after all was undone. So here a request goes to one server at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::join_all;
use parking_lot::Mutex;
use redis::Value;
use ylock_core::url::Address;
use ylock_core::{Error, ErrorKind, Result};

use super::connection::{Answered, CallOptions, Connection, Endpoint, Outcome};
use super::connector::Connector;
use super::errors::{Redirection, unavailable};
use super::scripts::Call;
use super::slots::{Slots, slot_of};
use super::{server, version};

/// The number of times that a request is sent on to another server. More would mean that the servers do not agree.
const REDIRECTIONS: usize = 5;

/// The servers of a cluster; see the [module](self).
#[derive(Debug)]
pub(super) struct Cluster {
    connector: Arc<Connector>,
    /// The addresses of the URL: where to begin, and to begin again.
    seeds: Vec<Address>,
    servers: Mutex<BTreeMap<Address, Arc<Connection>>>,
    slots: Mutex<Slots>,
    is_looking: AtomicBool,
}

impl Cluster {
    /// Connects to the first server that answers, and asks it for the others.
    pub(super) async fn open(connector: Arc<Connector>, seeds: &[Address]) -> Result<Arc<Self>> {
        let cluster = Arc::new(Self {
            connector,
            seeds: seeds.to_vec(),
            servers: Mutex::default(),
            slots: Mutex::new(Slots::unknown()),
            is_looking: AtomicBool::new(false),
        });
        let mut failure = Error::new(ErrorKind::Config, "no server is given").with_engine(crate::NAME);
        for seed in seeds {
            match cluster.begin_with(seed).await {
                Ok(()) => {
                    cluster.must_keep_locks().await?;
                    cluster.must_have_own_version().await?;
                    return Ok(cluster);
                }
                Err(error) if error.kind() == ErrorKind::Config => return Err(error),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    async fn begin_with(&self, seed: &Address) -> Result<()> {
        self.server(seed).check(server::Kind::PartOfCluster).await?;
        let (_, slots) = self.slots_as_seen_by(seed).await?;
        *self.slots.lock() = slots;
        Ok(())
    }

    /// Fails if one of the servers throws away locks. One that does not answer is asked when it does.
    async fn must_keep_locks(&self) -> Result<()> {
        let servers = self.all()?;
        let asked = servers.iter().map(|(_, server)| self.connector.in_time(server.must_keep_locks()));
        let refused = join_all(asked).await.into_iter().filter_map(Result::err);
        let mut refused = refused.filter(|error| error.kind() == ErrorKind::Config);
        refused.next().map_or(Ok(()), Err)
    }

    /// Fails if what is stored has another version, and also if that is not known because the server that says it does not answer.
    async fn must_have_own_version(self: &Arc<Self>) -> Result<()> {
        let server = self.server_for(&self.connector.versioned)?;
        self.connector.in_time(server.connected()).await?;
        if server.says_version.load(Ordering::Relaxed) {
            return Ok(());
        }
        // It is on its way to another server, or that one has taken over.
        let until = self.connector.environment().now().plus(self.connector.request_timeout);
        let options = CallOptions { until, replicas: 0, asking: false };
        let answered = self.ask(&version::first(&self.connector), options).await?;
        version::judge(&self.connector, answered.value)
    }

    /// Asks the servers to which there is a connection whether they keep locks.
    pub(super) async fn look_for_eviction(&self) {
        let known: Vec<_> = self.servers.lock().values().map(Arc::clone).collect();
        let connected = known.iter().filter(|server| server.address().is_some());
        join_all(connected.map(|server| self.connector.in_time(server.look_for_eviction()))).await;
    }

    /// Returns whether all servers, as far as they are known, keep locks.
    pub(super) fn is_known_to_keep(&self) -> bool {
        self.all().map_or(true, |servers| servers.iter().all(|(_, server)| server.eviction.keeps()))
    }

    pub(super) async fn call(self: &Arc<Self>, call: &Call, options: CallOptions) -> Result<Answered> {
        // One server says the version for all of them.
        if self.connector.is_other_version.load(Ordering::Relaxed) {
            self.must_have_own_version().await.map_err(Error::without_effect)?;
        }
        self.ask(call, options).await
    }

    async fn ask(self: &Arc<Self>, call: &Call, mut options: CallOptions) -> Result<Answered> {
        let slot = slot_of(call.place());
        // Each server that sends on has done nothing: whatever the last one says is said of the
        // whole request.
        let mut server = self.server_of(slot).map_err(Error::without_effect)?;
        for _ in 0..=REDIRECTIONS {
            match server.call(call, options).await {
                Ok(Outcome::Answered(answered)) => return Ok(answered),
                Ok(Outcome::Elsewhere(Redirection { to, only_now })) => {
                    server = self.server(&to);
                    options.asking = only_now;
                    if !only_now {
                        self.slots.lock().set(slot, to);
                    }
                }
                Err(error) => {
                    self.look_again_after(&error);
                    return Err(error);
                }
            }
        }
        let message = "the servers of the cluster do not agree on which of them keeps the lock";
        Err(unavailable(message).without_effect())
    }

    /// Calls a script that is about the server, on the server of this name.
    pub(super) async fn call_on(
        self: &Arc<Self>,
        master: &str,
        call: &Call,
        options: CallOptions,
    ) -> Result<Answered> {
        let address = self.slots.lock().servers().into_iter().find(|it| it.to_string() == master).cloned();
        let server = address.map(|address| self.server(&address)).ok_or_else(no_server_is_known)?;
        match server.call(call, options).await {
            Ok(Outcome::Answered(answered)) => Ok(answered),
            Ok(Outcome::Elsewhere(_)) => Err(unavailable("the server sends on what is about itself")),
            Err(error) => {
                self.look_again_after(&error);
                Err(error)
            }
        }
    }

    /// Returns the names of the servers that keep locks, in order.
    pub(super) fn masters(&self) -> Result<Vec<String>> {
        let mut names: Vec<_> = self.slots.lock().servers().into_iter().map(ToString::to_string).collect();
        names.sort_unstable();
        if names.is_empty() { Err(no_server_is_known()) } else { Ok(names) }
    }

    /// Returns the servers that keep locks, each with its name.
    pub(super) fn all(&self) -> Result<Vec<(String, Arc<Connection>)>> {
        let slots = self.slots.lock();
        let mut servers: Vec<_> =
            slots.servers().into_iter().map(|address| (address.to_string(), self.server(address))).collect();
        servers.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        if servers.is_empty() { Err(no_server_is_known()) } else { Ok(servers) }
    }

    /// Returns the server that keeps a lock.
    pub(super) fn server_for(&self, place: &str) -> Result<Arc<Connection>> {
        self.server_of(slot_of(place))
    }

    /// Returns any server of the cluster.
    pub(super) fn any(&self) -> Result<Arc<Connection>> {
        self.slots.lock().any().map(|address| self.server(address)).ok_or_else(no_server_is_known)
    }

    fn server_of(&self, slot: u16) -> Result<Arc<Connection>> {
        self.slots.lock().get(slot).map(|address| self.server(address)).ok_or_else(no_server_is_known)
    }

    fn server(&self, address: &Address) -> Arc<Connection> {
        let mut servers = self.servers.lock();
        if let Some(known) = servers.get(address) {
            return Arc::clone(known);
        }
        let made = || Connection::new(&self.connector, Endpoint::Known(address.clone()));
        Arc::clone(servers.entry(address.clone()).or_insert_with(made))
    }

    fn look_again_after(self: &Arc<Self>, error: &Error) {
        if error.kind() == ErrorKind::Unavailable {
            self.look_again();
        }
    }

    /// Asks all servers again which of them keeps what, in a task that no caller waits for: a server did not answer, so another one may
    /// have taken over.
    pub(super) fn look_again(self: &Arc<Self>) {
        if self.is_looking.swap(true, Ordering::AcqRel) {
            return;
        }
        let look = Look(Arc::clone(self));
        self.connector.environment().spawn_for_all(Box::pin(async move {
            let Look(cluster) = &look;
            cluster.look().await;
        }));
    }

    /// Asks all servers now which of them keeps what. If none answers, what was known stays.
    pub(super) async fn look(&self) {
        if let Some(slots) = self.ask_all().await {
            let servers = slots.servers();
            self.servers.lock().retain(|address, _| servers.contains(address));
            *self.slots.lock() = slots;
        }
    }

    /// Asks all servers, and believes the one that knows of the latest failover: a server that is cut off knows of none. Of several that know
    /// of it the last in the order of addresses, and not that of a map, which its random seed decides: so a run of the simulation can be
    /// repeated.
    async fn ask_all(&self) -> Option<Slots> {
        let mut known: BTreeSet<Address> = self.seeds.iter().cloned().collect();
        known.extend(self.servers.lock().keys().cloned());
        let answers = known.iter().map(|address| self.connector.in_time(self.slots_as_seen_by(address)));
        let answers = join_all(answers).await.into_iter().filter_map(Result::ok);
        answers.max_by_key(|(epoch, _)| *epoch).map(|(_, slots)| slots)
    }

    async fn slots_as_seen_by(&self, address: &Address) -> Result<(u64, Slots)> {
        let mut both = redis::pipe();
        both.cmd("CLUSTER").arg("INFO").cmd("CLUSTER").arg("SLOTS");
        let (info, slots): (String, Value) = self.server(address).ask(&both).await?;
        let epoch = info.lines().find_map(|line| line.strip_prefix("cluster_current_epoch:")?.parse().ok());
        epoch.zip(Slots::read(&slots, address)).ok_or_else(|| {
            let message = format!("the server at {address} answered CLUSTER INFO or CLUSTER SLOTS oddly");
            Error::new(ErrorKind::Unexpected, message)
        })
    }
}

/// A look at the servers that is under way. Dropped with its task, also where its runtime ends: then the next failure begins another one.
struct Look(Arc<Cluster>);

impl Drop for Look {
    fn drop(&mut self) {
        self.0.is_looking.store(false, Ordering::Release);
    }
}

fn no_server_is_known() -> Error {
    unavailable("no server of the cluster keeps this part of the locks now")
}
