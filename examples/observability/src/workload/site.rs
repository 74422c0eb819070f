//! A store, and two clients of it that stand for two processes.

use std::sync::Arc;

use anyhow::{Context, Result};
use ylock::{Locks, MemoryStore, Ylock, metrics::MetricsLayer};

use super::Tally;

#[derive(Debug)]
pub(super) struct Site {
    clients: [Ylock; 2],
    tally: Arc<Tally>,
}

impl Site {
    pub(super) async fn connect(url: &str) -> Result<Self> {
        let clients = if url.starts_with("memory:") {
            // Each connection to memory:// would be a store of its own.
            let store = MemoryStore::new();
            [Ylock::new(store.engine()), Ylock::new(store.engine())]
        } else {
            let connect = || async { ylock::connect(url).await.with_context(|| shown(url)) };
            [connect().await?, connect().await?]
        };
        let tally = Arc::new(Tally::new(clients[0].engine_name()));
        Ok(Self { clients: clients.map(|client| client.layer(MetricsLayer::new())), tally })
    }

    pub(super) fn clients(&self) -> &[Ylock; 2] {
        &self.clients
    }

    /// Returns the locks of a group, as both clients see them.
    pub(super) fn locks(&self, group: &'static str) -> [Locks; 2] {
        [self.clients[0].locks(group), self.clients[1].locks(group)]
    }

    pub(super) fn tally(&self) -> &Arc<Tally> {
        &self.tally
    }

    pub(super) async fn close(&self) {
        let [a, b] = &self.clients;
        tokio::join!(a.close(), b.close());
    }
}

/// Returns a message with the host of a URL, without the part before it, which may contain a password.
fn shown(url: &str) -> String {
    let host = url.rsplit_once('@').map_or(url, |(_, host)| host);
    format!("cannot use {host}")
}
