//! The subject of a run, and the store below it.

use std::sync::Arc;

use clap::ValueEnum;
use ylock_core::Key;
use ylock_core::engine::Engine;
use ylock_core::environment::Environment;
use ylock_engine_cassandra::CassandraOptions;
use ylock_engine_cassandra::options::Notify;
use ylock_engine_etcd::EtcdEngine;
use ylock_engine_redis::RedisEngine;
use ylock_engine_zookeeper::ZookeeperEngine;
use ylock_testkit::Wrapped;

use crate::clocks::Clocks;
use crate::connecting::Connecting;
use crate::etcd;
use crate::faults::Fault;
use crate::led::Led;
use crate::memory::Server;
use crate::places::Places;
use crate::redis::{self, Dialer, Observed};
use crate::setting::Setting;
use crate::store::{Cluster, Connection};
use crate::world::World;
use crate::zookeeper::{Clients, Ensemble};

/// The subject of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Subject {
    /// The Cassandra engine alone: each client process keeps to the contract of an engine, one task at a lock at a time
    #[default]
    Engine,
    /// Locks as users hold them: processes with several tasks and owners, over one in-memory store; only clients get into trouble
    KeeperOverMemory,
    /// The same, over a store that is where its clients are: it answers at once what needs no wait
    KeeperAtOnce,
    /// Locks as users hold them, over the simulated cluster, with every kind of trouble
    KeeperOverCassandra,
    /// The ZooKeeper engine alone, over a simulated ensemble
    #[value(name = "zookeeper")]
    ZookeeperEngine,
    /// Locks as users hold them, over the simulated ensemble
    KeeperOverZookeeper,
    /// The Redis engine alone, with its driver and its scripts, over a simulated server
    #[value(name = "redis")]
    RedisEngine,
    /// Locks as users hold them, over the simulated server
    KeeperOverRedis,
    /// The Redis engine alone, over a simulated cluster whose slots move
    #[value(name = "redis-cluster")]
    RedisCluster,
    /// Locks as users hold them, over the simulated cluster of Redis
    KeeperOverRedisCluster,
    /// The etcd engine alone, over a simulated cluster of etcd
    #[value(name = "etcd")]
    EtcdEngine,
    /// Locks as users hold them, over the simulated cluster of etcd
    KeeperOverEtcd,
}

impl Subject {
    /// Returns whether this can go wrong there.
    pub fn knows(self, fault: Fault) -> bool {
        use Fault::{
            Anew, Apart, Crash, Cut, Delay, Down, Drift, Duplicate, Election, FailOver, Forget, Lag, Loss,
            Pause, Reshard, Runtime, SetBack, SetForward, StandStill, Step,
        };
        match self {
            Self::Engine | Self::KeeperOverCassandra => !matches!(
                fault,
                Cut | Election | Lag | Runtime | SetBack | SetForward | FailOver | Reshard | Apart | Anew
            ),
            Self::RedisEngine | Self::KeeperOverRedis => matches!(
                fault,
                Pause
                    | StandStill
                    | Crash
                    | Step
                    | Drift
                    | Delay
                    | Loss
                    | Down
                    | SetBack
                    | SetForward
                    | FailOver
                    | Forget
            ),
            // The clocks of the servers agree, as `guarantees.md` asks for.
            Self::RedisCluster | Self::KeeperOverRedisCluster => {
                matches!(
                    fault,
                    Pause | StandStill | Crash | Step | Delay | Loss | Down | Drift | Reshard | Apart
                )
            }
            Self::KeeperOverMemory | Self::KeeperAtOnce => {
                matches!(fault, Pause | StandStill | Crash | Step | Drift)
            }
            Self::ZookeeperEngine | Self::KeeperOverZookeeper => matches!(
                fault,
                Pause
                    | StandStill
                    | Crash
                    | Step
                    | Drift
                    | Delay
                    | Loss
                    | Down
                    | Cut
                    | Election
                    | Lag
                    | Runtime
            ),
            Self::EtcdEngine | Self::KeeperOverEtcd => matches!(
                fault,
                Pause
                    | StandStill
                    | Crash
                    | Step
                    | Drift
                    | Delay
                    | Loss
                    | Duplicate
                    | Down
                    | Cut
                    | Election
                    | Lag
                    | Runtime
                    | Anew
                    | Forget
            ),
        }
    }

    /// Returns whether it has the Cassandra engine in it.
    pub fn is_of_cassandra(self) -> bool {
        matches!(self, Self::Engine | Self::KeeperOverCassandra)
    }

    /// Returns whether its store may fail.
    pub fn has_trouble(self) -> bool {
        !matches!(self, Self::KeeperOverMemory | Self::KeeperAtOnce)
    }

    /// Returns whether clients are watched above the keeper.
    pub fn is_above_the_keeper(self) -> bool {
        matches!(
            self,
            Self::KeeperOverMemory
                | Self::KeeperAtOnce
                | Self::KeeperOverCassandra
                | Self::KeeperOverZookeeper
                | Self::KeeperOverRedis
                | Self::KeeperOverRedisCluster
                | Self::KeeperOverEtcd
        )
    }

    /// Returns whether its store gives out tokens.
    pub(crate) fn has_tokens(self) -> bool {
        !self.is_redis_cluster()
    }

    pub(crate) fn is_redis_cluster(self) -> bool {
        matches!(self, Self::RedisCluster | Self::KeeperOverRedisCluster)
    }
}

/// The store that all clients of a run share.
pub(crate) enum Backend {
    Cluster(Arc<Cluster>),
    Memory(Arc<Server>),
    Ensemble(Arc<Ensemble>),
    Redis(Arc<redis::Servers>),
    Etcd(Arc<etcd::Cluster>),
}

impl Backend {
    /// Connects a client, and returns its engine; with `places`, its places in the queue are watched.
    pub(crate) fn connect(
        &self,
        world: &Arc<World>,
        clocks: &Arc<Clocks>,
        setting: &Setting<'_>,
        options: &CassandraOptions,
        places: Option<&Arc<Places>>,
    ) -> Arc<dyn Engine> {
        let engine = match self {
            Self::Cluster(cluster) => {
                let connection = Connection::new(world, cluster, clocks, setting.request_timeout());
                let connection = match places {
                    Some(places) => connection.watched_by(places),
                    None => connection,
                };
                // Clients that are not told are among those that are.
                let is_told = setting.notify && !clocks.random().is_multiple_of(4);
                let notify = if is_told { Notify::Udp } else { Notify::Off };
                (setting.make)(Arc::new(connection), clocks, &options.clone().with_notify(notify))
            }
            Self::Memory(server) => server.connect(clocks, setting.of == Subject::KeeperAtOnce),
            Self::Ensemble(ensemble) => {
                let options = setting.zookeeper_options();
                let clients = Clients::new(ensemble, clocks, options.session(), setting.mistakes);
                let clients = (setting.wrap_ensemble)(Arc::new(clients), clocks);
                let environment: Arc<dyn Environment> = Arc::clone(clocks) as _;
                Arc::new(Connecting::new(
                    "zookeeper",
                    clocks,
                    Box::new(move || {
                        let (clients, environment, options) =
                            (Arc::clone(&clients), Arc::clone(&environment), options.clone());
                        Box::pin(async move {
                            let engine = ZookeeperEngine::over(clients, environment, &options).await?;
                            Ok(Arc::new(engine) as Arc<dyn Engine>)
                        })
                    }),
                ))
            }
            Self::Redis(servers) => {
                let (servers, options) = (Arc::clone(servers), setting.redis_options(clocks, servers));
                let environment: Arc<dyn Environment> = Arc::clone(clocks) as _;
                Arc::new(Connecting::new(
                    "redis",
                    clocks,
                    Box::new(move || {
                        let (dialer, server) = (Dialer::to(&servers), Arc::clone(servers.any(0)));
                        let (environment, options) = (Arc::clone(&environment), options.clone());
                        Box::pin(async move {
                            let engine = RedisEngine::over(Arc::new(dialer), environment, &options).await?;
                            let observed = Observed { engine: Arc::new(engine), server };
                            Ok(Arc::new(Wrapped(observed)) as Arc<dyn Engine>)
                        })
                    }),
                ))
            }
            Self::Etcd(cluster) => {
                let (timeout, options) = (setting.request_timeout(), setting.etcd_options());
                let client = etcd::Client::new(cluster, clocks, timeout, setting.etcd_mistakes);
                let client = (setting.wrap_etcd)(Arc::new(client), clocks);
                Arc::new(EtcdEngine::over(client, Arc::clone(clocks) as _, &options))
            }
        };
        (setting.wrap)(engine)
    }

    /// Returns the servers, if one of them leads.
    pub(crate) fn led(&self) -> Option<Arc<dyn Led>> {
        match self {
            Self::Ensemble(ensemble) => Some(Arc::clone(ensemble) as _),
            Self::Etcd(cluster) => Some(Arc::clone(cluster) as _),
            Self::Cluster(_) | Self::Memory(_) | Self::Redis(_) => None,
        }
    }

    /// Ends all trouble.
    pub(crate) fn calm_down(&self) {
        match self {
            Self::Cluster(cluster) => cluster.calm_down(),
            Self::Memory(_) => {}
            Self::Ensemble(_) | Self::Etcd(_) => self.led().into_iter().for_each(Led::calm_down),
            Self::Redis(servers) => servers.calm_down(),
        }
    }

    /// Returns what was wrong with burials, and how many there were.
    pub(crate) fn burials(&self) -> (Vec<String>, u64) {
        match self {
            Self::Cluster(cluster) => (cluster.heartbeats.wrong(), cluster.heartbeats.burials()),
            _ => (Vec::new(), 0),
        }
    }

    /// Returns what is left of these keys, when no client has anything to do with them any more.
    pub(crate) fn left(&self, keys: &[Key]) -> Vec<String> {
        match self {
            Self::Cluster(cluster) => keys.iter().filter_map(|key| left_in(cluster, key)).collect(),
            Self::Memory(server) => server.left(keys),
            Self::Ensemble(ensemble) => ensemble.left(),
            Self::Redis(servers) => servers.left(keys),
            Self::Etcd(cluster) => cluster.left(),
        }
    }
}

fn left_in(cluster: &Cluster, key: &Key) -> Option<String> {
    match cluster.truth(key) {
        Ok(look) if look.rows.iter().all(|seen| seen.row.is_none()) => None,
        left => Some(format!("{left:?}")),
    }
}
