//! The driver without the engine.

use zookeeper_client::{Acls, Client, CreateMode, OneshotWatcher};

const PARENT: &str = "/ylock-bench/raw";

/// See the [module](self).
#[derive(Clone)]
pub(crate) struct Raw(Client);

impl Raw {
    pub(crate) async fn connect() -> Self {
        let client = Client::connect(&super::servers()).await.expect("the servers answer");
        let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
        client.mkdir(PARENT, &options).await.expect("made");
        Self(client)
    }

    pub(crate) async fn pair(&self) {
        let path = self.make().await;
        self.remove(&path).await;
    }

    pub(crate) async fn make(&self) -> String {
        let prefix = format!("{PARENT}/x-");
        let options = CreateMode::EphemeralSequential.with_acls(Acls::anyone_all());
        let (_, place) = self.0.create(&prefix, b"", &options).await.expect("made");
        format!("{prefix}{place}")
    }

    pub(crate) async fn remove(&self, path: &str) {
        self.0.delete(path, None).await.expect("removed");
    }

    pub(crate) async fn watch(&self, path: &str) -> OneshotWatcher {
        self.0.sync(path).await.expect("caught up");
        let (_, _, told) = self.0.get_and_watch_data(path).await.expect("watched");
        told
    }
}
