//! Runs the servers that one command needs, for as long as the command needs them.

use std::env;

use anyhow::Result;

use crate::{
    cassandra::Cassandra,
    cli::Server,
    file_lock::FileLock,
    places::Places,
    redis,
    store::{self, Stores},
    zookeeper,
};

/// The servers of one command. When dropped, it stops the servers that neither `up` asked for nor another run uses.
#[derive(Debug)]
pub(crate) struct Servers {
    places: Places,
    wanted: Vec<Server>,
    cassandra: Cassandra,
    redis: Stores,
    zookeeper: Stores,
    usage: Option<FileLock>,
}

impl Servers {
    /// Starts the wanted servers, except those that the user has named in variables.
    pub(crate) fn start(places: &Places, wanted: &[Server]) -> Result<Self> {
        let usage = FileLock::shared(&places.usage_lock())?;
        let servers = Self {
            places: places.clone(),
            wanted: wanted.iter().copied().filter(is_missing).collect(),
            cassandra: Cassandra::new(places),
            redis: redis::stores(places).without_given(),
            zookeeper: zookeeper::stores(places).without_given(),
            usage: Some(usage),
        };
        servers.up()?;
        Ok(servers)
    }

    /// Waits until no other run uses the servers: for tests that break servers.
    pub(crate) fn alone(&mut self) -> Result<()> {
        // The shared lock is given up first. Two runs that both kept their shared lock would wait for each other for ever.
        self.usage = None;
        self.usage = Some(FileLock::exclusive(&self.places.usage_lock())?);
        // The other run may have been the last one, as far as it knew, and have stopped the servers.
        self.up()
    }

    pub(crate) fn environment(&self) -> Result<Vec<(&'static str, String)>> {
        let mut variables = Vec::new();
        for server in &self.wanted {
            match server {
                Server::Cassandra => variables.extend(self.cassandra.environment(true)),
                Server::Redis => variables.extend(self.redis.environment()?),
                Server::Zookeeper => {
                    variables.extend(self.zookeeper.environment()?);
                    variables.extend(zookeeper::own_servers(&self.places)?);
                }
            }
        }
        variables.push(("YLOCK_CACHE", self.places.root().display().to_string()));
        if let Ok(xtask) = env::current_exe() {
            variables.push(("YLOCK_XTASK", xtask.display().to_string()));
        }
        Ok(variables)
    }

    fn up(&self) -> Result<()> {
        self.wanted.iter().try_for_each(|server| match server {
            Server::Cassandra => self.cassandra.up(true, false),
            Server::Redis => self.redis.up(false),
            Server::Zookeeper => self.zookeeper.up(false),
        })
    }

    fn stop_unkept(&self) -> Result<()> {
        self.wanted.iter().try_for_each(|server| match server {
            Server::Cassandra => self.cassandra.stop_unkept(),
            Server::Redis => self.redis.stop_unkept(),
            Server::Zookeeper => self.zookeeper.stop_unkept(),
        })
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.usage = None;
        let stopped = match FileLock::try_exclusive(&self.places.usage_lock()) {
            Ok(Some(_alone)) => self.stop_unkept(),
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = stopped {
            eprintln!("the servers may still run; stop them with `cargo xtask down`: {error:#}");
        }
    }
}

/// Returns whether the user has not named this server. Redis and ZooKeeper are several stores each, which are left out one by one.
fn is_missing(server: &Server) -> bool {
    *server != Server::Cassandra || !store::is_given(CASSANDRA)
}

/// Returns whether tests that break servers would break servers of the user. Of the other stores these tests start their own servers.
pub(crate) fn would_break_given(wanted: &[Server]) -> bool {
    wanted.contains(&Server::Cassandra) && store::is_given(CASSANDRA)
}

const CASSANDRA: &str = "YLOCK_TEST_CASSANDRA";
