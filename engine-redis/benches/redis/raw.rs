//! The engine's two scripts, called without the engine over one connection: the speed that the engine can reach at most.

use redis::aio::MultiplexedConnection;
use redis::{Script, Value};
use ylock_core::Owner;
use ylock_engine_redis::scripts;

/// See the [module](self).
#[derive(Clone)]
pub(crate) struct Raw {
    connection: MultiplexedConnection,
    acquire: String,
    release: String,
}

impl Raw {
    pub(crate) async fn connect() -> Self {
        let client = redis::Client::open(super::address()).expect("an address");
        let mut connection = client.get_multiplexed_async_connection().await.expect("the server answers");
        let mut load = async |text: &str| -> String {
            let mut command = redis::cmd("SCRIPT");
            command.arg("LOAD").arg(text);
            command.exec_async(&mut connection).await.expect("loaded");
            Script::new(text).get_hash().to_owned()
        };
        let (acquire, release) = (load(scripts::ACQUIRE).await, load(scripts::RELEASE).await);
        Self { connection, acquire, release }
    }

    /// Acquires and gives back.
    pub(crate) async fn pair(&mut self, place: &str) {
        let [id, owner] = [identity(), identity()];
        let mut acquire = redis::cmd("EVALSHA");
        acquire.arg(&self.acquire).arg(1).arg(place).arg(&id);
        for argument in ["w", "30000", "queue", "fair", "-", "20000", &owner, "-", "a client"] {
            acquire.arg(argument);
        }
        let answer: Value = acquire.query_async(&mut self.connection).await.expect("granted");
        assert!(matches!(answer, Value::Array(_)), "{answer:?}");
        let mut release = redis::cmd("EVALSHA");
        release.arg(&self.release).arg(1).arg(place).arg(&id).arg("0");
        release.exec_async(&mut self.connection).await.expect("released");
    }
}

/// Makes an identity that is as long as those of the engine.
fn identity() -> String {
    let mut text = Owner::new().to_string();
    text.truncate(22);
    text
}
