//! Asks Sentinels which server is the master now.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use parking_lot::Mutex;
use redis::aio::MultiplexedConnection;
use ylock_core::url::Address;
use ylock_core::{Error, ErrorKind, Result};

use super::connector::Connector;
use super::errors;

/// The pause before the Sentinels are asked again whether another server has taken over. The old master may be alive and not know it.
pub(super) const WATCH: Duration = Duration::from_secs(1);

/// The Sentinels of a service; see the [module](self).
pub(super) struct Sentinels {
    connector: Arc<Connector>,
    service: String,
    all: Vec<Sentinel>,
}

struct Sentinel {
    address: Address,
    connection: Mutex<Option<MultiplexedConnection>>,
}

/// The belief of a Sentinel about the master.
struct Belief {
    master: Address,
    /// The number of the configuration, larger after each failover.
    epoch: u64,
}

impl Sentinels {
    pub(super) fn new(connector: Arc<Connector>, service: &str, addresses: &[Address]) -> Arc<Self> {
        let sentinel =
            |address: &Address| Sentinel { address: address.clone(), connection: Mutex::default() };
        Arc::new(Self {
            connector,
            service: service.to_owned(),
            all: addresses.iter().map(sentinel).collect(),
        })
    }

    /// Asks all Sentinels, and believes the one that knows of the latest failover: a Sentinel that is cut off knows of none.
    pub(super) async fn master(&self) -> Result<Address> {
        let answers =
            join_all(self.all.iter().map(|sentinel| self.connector.in_time(self.ask(sentinel)))).await;
        let mut failure = None;
        let mut latest: Option<Belief> = None;
        for answer in answers {
            match answer {
                Ok(belief) if latest.as_ref().is_none_or(|known| known.epoch < belief.epoch) => {
                    latest = Some(belief);
                }
                Ok(_) => {}
                Err(error) => failure = Some(error),
            }
        }
        match (latest, failure) {
            (Some(belief), _) => Ok(belief.master),
            (None, Some(error)) => Err(error),
            (None, None) => {
                Err(Error::new(ErrorKind::Config, "no Sentinel is given").with_engine(crate::NAME))
            }
        }
    }

    async fn ask(&self, sentinel: &Sentinel) -> Result<Belief> {
        let known = sentinel.connection.lock().take();
        let mut connection = match known {
            Some(connection) => connection,
            None => self.connector.connect(&sentinel.address).await?,
        };
        let mut question = redis::cmd("SENTINEL");
        question.arg("MASTER").arg(&self.service);
        let answer: Vec<String> = match question.query_async(&mut connection).await {
            Ok(answer) => answer,
            Err(error) if error.detail().is_some_and(|text| text.contains("No such master")) => {
                return Err(self.wrong(sentinel, "knows no service of the name"));
            }
            Err(error) => return Err(errors::classify(error)),
        };
        // Kept only now, because it has answered.
        *sentinel.connection.lock() = Some(connection);
        Belief::read(&answer).ok_or_else(|| self.wrong(sentinel, "gives no readable answer about"))
    }

    fn wrong(&self, sentinel: &Sentinel, what: &str) -> Error {
        let message = format!("the Sentinel at {} {what} {:?}", sentinel.address, self.service);
        Error::new(ErrorKind::Config, message).with_engine(crate::NAME)
    }
}

impl Belief {
    fn read(answer: &[String]) -> Option<Self> {
        let field = |name: &str| {
            let pair = answer.chunks_exact(2).find(|pair| pair[0] == name)?;
            Some(pair[1].as_str())
        };
        let master = Address::new(field("ip")?, field("port")?.parse().ok()?);
        Some(Self { master, epoch: field("config-epoch")?.parse().ok()? })
    }
}

impl fmt::Debug for Sentinels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sentinels").field("service", &self.service).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_belief_is_read() {
        let answer =
            ["name", "locks", "ip", "10.0.0.1", "port", "6379", "config-epoch", "3"].map(str::to_owned);
        let belief = Belief::read(&answer).unwrap();
        assert_eq!((belief.master, belief.epoch), (Address::new("10.0.0.1", 6379), 3));
        assert!(Belief::read(&answer[..6]).is_none());
    }
}
