//! The subject of a run, and the store below it.

use std::sync::Arc;

use clap::ValueEnum;
use ylock_core::Key;
use ylock_core::engine::Engine;
use ylock_engine_cassandra::CassandraOptions;

use crate::clocks::Clocks;
use crate::faults::Fault;
use crate::memory::Server;
use crate::places::Places;
use crate::setting::Setting;
use crate::store::{Cluster, Connection};
use crate::world::World;
use crate::zookeeper::{Clients, Connecting, Ensemble};

/// The subject of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Subject {
    /// The Cassandra engine alone: each client process keeps to the contract of an engine, one task at a lock at a time
    #[default]
    Engine,
    /// Locks as users hold them: processes with several tasks and owners, over one in-memory store; only clients get into trouble
    KeeperOverMemory,
    /// Locks as users hold them, over the simulated cluster, with every kind of trouble
    KeeperOverCassandra,
    /// The ZooKeeper engine alone, over a simulated ensemble
    #[value(name = "zookeeper")]
    ZookeeperEngine,
    /// Locks as users hold them, over the simulated ensemble
    KeeperOverZookeeper,
}

impl Subject {
    /// Returns whether this can go wrong there.
    pub fn knows(self, fault: Fault) -> bool {
        use Fault::{Crash, Cut, Delay, Down, Drift, Election, Lag, Loss, Pause, Runtime, StandStill, Step};
        match self {
            Self::Engine | Self::KeeperOverCassandra => !matches!(fault, Cut | Election | Lag | Runtime),
            Self::KeeperOverMemory => matches!(fault, Pause | StandStill | Crash | Step | Drift),
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
        }
    }

    /// Returns whether its store may fail.
    pub fn has_trouble(self) -> bool {
        self != Self::KeeperOverMemory
    }

    /// Returns whether clients are watched above the keeper.
    pub(crate) fn is_above_the_keeper(self) -> bool {
        matches!(self, Self::KeeperOverMemory | Self::KeeperOverCassandra | Self::KeeperOverZookeeper)
    }
}

/// The store that all clients of a run share.
pub(crate) enum Backend {
    Cluster(Arc<Cluster>),
    Memory(Arc<Server>),
    Ensemble(Arc<Ensemble>),
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
                (setting.make)(Arc::new(connection), clocks, options)
            }
            Self::Memory(server) => server.connect(clocks),
            Self::Ensemble(ensemble) => {
                let options = setting.zookeeper_options();
                let clients = Clients::new(ensemble, clocks, options.session(), setting.mistakes);
                let clients = (setting.wrap_ensemble)(Arc::new(clients), clocks);
                Arc::new(Connecting::to(clients, clocks, &options))
            }
        };
        (setting.wrap)(engine)
    }

    /// Ends all trouble.
    pub(crate) fn calm_down(&self) {
        match self {
            Self::Cluster(cluster) => cluster.calm_down(),
            Self::Memory(_) => {}
            Self::Ensemble(ensemble) => ensemble.calm_down(),
        }
    }

    /// Returns what is left of these keys, when no client has anything to do with them any more.
    pub(crate) fn left(&self, keys: &[Key]) -> Vec<String> {
        match self {
            Self::Cluster(cluster) => keys.iter().filter_map(|key| left_in(cluster, key)).collect(),
            Self::Memory(server) => server.left(keys),
            Self::Ensemble(ensemble) => ensemble.left(),
        }
    }
}

fn left_in(cluster: &Cluster, key: &Key) -> Option<String> {
    match cluster.truth(key) {
        Ok(look) if look.rows.iter().all(|seen| seen.row.is_none()) => None,
        left => Some(format!("{left:?}")),
    }
}
