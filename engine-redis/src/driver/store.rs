//! All servers that keep the locks, as one.

use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use ylock_core::engine::{Diagnostics, Meter};
use ylock_core::environment::{BackgroundTask, BoxFuture, Environment, Moment};
use ylock_core::server_clock::TellsTime;
use ylock_core::{Error, ErrorKind, Result};

use super::cluster::Cluster;
use super::connection::{Answered, CallOptions, Connection, Endpoint, Outcome};
use super::connector::{Connector, Surroundings};
use super::scripts::{Answer, Call};
use super::sentinel::{Sentinels, WATCH};
use super::{diagnose, server};
use crate::options::{Eviction, RedisOptions, Topology};

/// The name of the server that keeps all locks, whichever it is now. The names of a cluster's servers have a colon.
const THE_ONE: &str = "one";

/// The pause between two looks at whether the servers keep locks, for as long as the client is used.
const LOOK: Duration = Duration::from_secs(2);

/// The servers that keep the locks; see the [module](self).
#[derive(Debug)]
pub(crate) struct Store {
    servers: Servers,
    requests: AtomicU64,
    accepts_eviction: bool,
    /// The moment of the last look at whether the servers keep locks, in nanoseconds.
    looked: AtomicU64,
    environment: Arc<dyn Environment>,
    request_timeout: Duration,
    meter: Meter,
}

#[derive(Debug)]
enum Servers {
    One(Arc<Connection>),
    Cluster(Arc<Cluster>),
}

impl Store {
    /// Connects, and checks whether locks can be kept on the servers.
    pub(crate) async fn open(options: &RedisOptions, surroundings: &Surroundings) -> Result<Self> {
        let (connector, watch) = (Connector::of(options, surroundings)?, BackgroundTask::default());
        let environment = &surroundings.environment;
        let servers = match options.topology() {
            Topology::Single => {
                let [address] = options.addresses() else {
                    return Err(Error::new(ErrorKind::Config, "one host is needed").with_engine(crate::NAME));
                };
                let connection = Connection::new(&connector, Endpoint::Known(address.clone()));
                connection.check(server::Kind::Single).await?;
                connection.must_keep_locks().await?;
                Servers::One(connection)
            }
            Topology::Sentinel { service } => {
                let to_sentinels = Connector::of_sentinels(options, surroundings)?;
                let sentinels = Sentinels::new(to_sentinels, service, options.addresses());
                let connection = Connection::new(&connector, Endpoint::Asked(Arc::clone(&sentinels)));
                connection.check(server::Kind::Master).await?;
                connection.must_keep_locks().await?;
                watch.start(environment, watching(&connection, &sentinels, environment));
                Servers::One(connection)
            }
            Topology::Cluster => Servers::Cluster(Cluster::open(connector, options.addresses()).await?),
        };
        let environment = Arc::clone(environment);
        let request_timeout = options.request_timeout();
        let addresses: Vec<_> = options.addresses().iter().map(ToString::to_string).collect();
        Ok(Self {
            servers,
            requests: AtomicU64::new(0),
            accepts_eviction: options.eviction() == Eviction::LostLocksAccepted,
            looked: AtomicU64::new(environment.now().as_nanos()),
            environment,
            request_timeout,
            meter: Meter::of(crate::NAME, addresses.join(",")),
        })
    }

    /// Returns how many scripts were called.
    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Calls a script. An error means: *it may have happened, or still happen*, unless the error
    /// says that [it did not](Error::had_no_effect).
    pub(crate) async fn call(&self, call: Call) -> Result<Answer> {
        self.call_replicated(call, 0).await.map(|(answer, _)| answer)
    }

    /// Calls a script that writes, and waits until so many replicas have what it wrote. Returns also whether they have it.
    pub(crate) async fn call_replicated(&self, call: Call, replicas: u32) -> Result<(Answer, bool)> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        // Pinned here: each function that takes a future by value keeps room for it twice.
        let request = pin!(self.send(&call, replicas));
        let Answered { value, reached, sent_on } =
            self.meter.measure(&*self.environment, call.script.name, request).await?;
        Ok((Answer::new(value, call.script, sent_on), reached))
    }

    /// Calls a script that is about one server and not about a lock, on the server of this [name](Self::masters).
    pub(crate) async fn call_on(&self, master: &str, call: Call) -> Result<Answer> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let request = async {
            match &self.servers {
                Servers::One(connection) => call_one(connection, &call, self.call_options(0)).await,
                Servers::Cluster(cluster) => cluster.call_on(master, &call, self.call_options(0)).await,
            }
        };
        let request = Box::pin(request);
        let answered = self.meter.measure(&*self.environment, call.script.name, request).await?;
        Ok(Answer::new(answered.value, call.script, answered.sent_on))
    }

    /// Returns the names of the servers that keep locks, as of the last look.
    pub(crate) fn masters(&self) -> Result<Vec<String>> {
        match &self.servers {
            Servers::One(_) => Ok(vec![THE_ONE.to_owned()]),
            Servers::Cluster(cluster) => cluster.masters(),
        }
    }

    /// Asks the servers that keep locks what they tell of themselves.
    pub(crate) async fn diagnose(&self) -> Result<Diagnostics> {
        self.look().await;
        let servers = match &self.servers {
            Servers::One(connection) => {
                vec![(connection.connected().await?.to_string(), Arc::clone(connection))]
            }
            Servers::Cluster(cluster) => cluster.all()?,
        };
        Ok(diagnose::diagnose(servers, &*self.environment, self.request_timeout).await)
    }

    /// Returns whether no server throws away locks, as far as is known.
    pub(crate) fn keeps_locks(&self) -> bool {
        !self.accepts_eviction
            && match &self.servers {
                Servers::One(connection) => connection.eviction.keeps(),
                Servers::Cluster(cluster) => cluster.is_known_to_keep(),
            }
    }

    /// Asks the servers from time to time whether they still keep locks, in a task that no caller waits for.
    pub(crate) fn keep_looking(self: &Arc<Self>) {
        let (now, looked) = (self.environment.now(), Moment::from_nanos(self.looked.load(Ordering::Relaxed)));
        if self.accepts_eviction || now.since(looked) < LOOK {
            return;
        }
        self.looked.store(now.as_nanos(), Ordering::Relaxed);
        let store = Arc::clone(self);
        self.environment.spawn(Box::pin(async move {
            match &store.servers {
                // A server that does not answer is asked when there is a connection again.
                Servers::One(connection) => drop(connection.look_for_eviction().await),
                Servers::Cluster(cluster) => cluster.look_for_eviction().await,
            }
        }));
    }

    /// Asks a cluster now which servers keep locks.
    pub(crate) async fn look(&self) {
        if let Servers::Cluster(cluster) = &self.servers {
            cluster.look().await;
        }
    }

    fn call_options(&self, replicas: u32) -> CallOptions {
        let until = self.environment.now().plus(self.request_timeout);
        CallOptions { until, replicas, asking: false }
    }

    async fn send(&self, call: &Call, replicas: u32) -> Result<Answered> {
        let options = self.call_options(replicas);
        match &self.servers {
            Servers::One(connection) => call_one(connection, call, options).await,
            // In a box: it is larger than the call of one server, which would have to keep room for it.
            Servers::Cluster(cluster) => Box::pin(cluster.call(call, options)).await,
        }
    }

    pub(crate) fn meter(&self) -> &Meter {
        &self.meter
    }

    /// Returns the server that keeps a lock now.
    pub(super) fn server_for(&self, place: &str) -> Result<Arc<Connection>> {
        match &self.servers {
            Servers::One(connection) => Ok(Arc::clone(connection)),
            Servers::Cluster(cluster) => cluster.server_for(place),
        }
    }

    /// Asks a cluster again where its parts are: one is not where it was.
    pub(super) fn look_again(&self) {
        if let Servers::Cluster(cluster) = &self.servers {
            cluster.look_again();
        }
    }
}

impl TellsTime for Store {
    /// Of a cluster, that of any server.
    async fn server_time(&self) -> Result<i64> {
        match &self.servers {
            Servers::One(connection) => connection.server_time().await,
            Servers::Cluster(cluster) => cluster.any()?.server_time().await,
        }
    }
}

async fn call_one(connection: &Arc<Connection>, call: &Call, options: CallOptions) -> Result<Answered> {
    match connection.call(call, options).await? {
        Outcome::Answered(answered) => Ok(answered),
        Outcome::Elsewhere(_) => Err(in_a_cluster().without_effect()),
    }
}

/// Returns a maker of tasks that leave a master that was replaced and does not know it, for as long as there is a client.
fn watching(
    connection: &Arc<Connection>,
    sentinels: &Arc<Sentinels>,
    environment: &Arc<dyn Environment>,
) -> impl Fn() -> BoxFuture + Send + Sync + 'static {
    let (connection, sentinels) = (Arc::downgrade(connection), Arc::clone(sentinels));
    let environment = Arc::downgrade(environment);
    move || {
        let (connection, sentinels) = (Weak::clone(&connection), Arc::clone(&sentinels));
        let environment = Weak::clone(&environment);
        Box::pin(async move {
            while let Some(time) = environment.upgrade() {
                let pause = time.sleep(time.jitter(WATCH));
                drop(time);
                pause.await;
                let master = sentinels.master().await;
                let Some(connection) = connection.upgrade() else { return };
                if let Ok(master) = master {
                    connection.moved_to(&master);
                }
            }
        })
    }
}

fn in_a_cluster() -> Error {
    let message = "the server is part of a cluster: its URL must begin with redis+cluster://";
    Error::new(ErrorKind::Config, message).with_engine(crate::NAME)
}
