//! Whether a server throws away keys when its memory is full, locks among them.
//!
//! The scripts decide by it where it matters: at a lock that is not there. What a client knows is from a moment ago. It refuses what the
//! server says that it may not keep, tells the operator, and takes back a promise.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use redis::aio::MultiplexedConnection;
use redis::{RedisResult, Value};
use ylock_core::connection::Live;
use ylock_core::environment::Moment;
use ylock_core::url::Address;
use ylock_core::{Error, ErrorKind, Result};

use super::connection::{Connection, Opened};
use super::connector::Connector;
use super::errors;
use super::server::field;

/// The first word with which a script refuses what may have been thrown away. The policy follows.
const EVICTS: &str = "evicts";
/// The age of a server's word that it throws away locks, after which it is asked again before it is believed.
const MENDED: Duration = Duration::from_secs(1);

/// What becomes of keys when the memory of a server is full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Keeping {
    /// They stay.
    Keeps,
    /// They are thrown away by this policy.
    Evicts(String),
    /// The server does not say, or this user may not ask.
    Unknown,
}

impl Keeping {
    /// Reads the answer to `INFO`. A server without a limit is never full.
    pub(super) fn of(info: &str) -> Self {
        match (field(info, "maxmemory"), field(info, "maxmemory_policy")) {
            (Some("0"), _) | (_, Some("noeviction")) => Self::Keeps,
            (_, Some(policy)) => Self::Evicts(policy.to_owned()),
            (_, None) => Self::Unknown,
        }
    }

    /// Asks a server.
    async fn ask(connection: &mut MultiplexedConnection) -> RedisResult<Self> {
        let mut question = redis::cmd("INFO");
        match question.arg("memory").query_async::<String>(connection).await {
            Ok(info) => Ok(Self::of(&info)),
            Err(error) if errors::is_forbidden(&error) => Ok(Self::Unknown),
            Err(error) => Err(error),
        }
    }
}

/// What the server of a connection has last said; see the [module](self).
#[derive(Debug, Default)]
pub(super) struct Eviction(Mutex<Option<Said>>);

#[derive(Debug)]
struct Said {
    keeping: Keeping,
    at: Moment,
}

impl Eviction {
    /// Asks the server at the other end of a new connection.
    pub(super) async fn ask(
        &self,
        connector: &Connector,
        server: &Address,
        connection: &mut MultiplexedConnection,
    ) -> RedisResult<()> {
        if !connector.accepts_eviction {
            let keeping = connector.answer(Keeping::ask(connection)).await?;
            self.note(server, keeping, connector.environment().now());
        }
        Ok(())
    }

    /// Notes what the server has said, and tells those who look after it if that is something new.
    fn note(&self, server: &Address, keeping: Keeping, at: Moment) {
        let before = self.0.lock().replace(Said { keeping: keeping.clone(), at }).map(|said| said.keeping);
        if before.as_ref() == Some(&keeping) {
            return;
        }
        match keeping {
            Keeping::Evicts(policy) => tracing::error!(
                %server,
                policy,
                "the server throws away keys when its memory is full, locks among them: no lock is acquired on it until its maxmemory-policy is \
                 noeviction, and locks that are held may be lost"
            ),
            Keeping::Unknown => tracing::warn!(
                %server,
                "the server does not say whether it throws away keys when its memory is full: make sure that its maxmemory-policy is noeviction, \
                 and let this user ask for `info`; until then exclusion is not promised"
            ),
            Keeping::Keeps if before.is_some() => {
                tracing::info!(%server, "the server keeps locks when its memory is full")
            }
            Keeping::Keeps => {}
        }
    }

    /// Returns by which policy the server throws away keys, as far as it is known, and when it has said so.
    fn policy(&self) -> Option<(String, Moment)> {
        match self.0.lock().as_ref()? {
            Said { keeping: Keeping::Evicts(policy), at } => Some((policy.clone(), *at)),
            _ => None,
        }
    }

    /// Returns whether the server, as far as it is known, throws away keys.
    pub(super) fn evicts(&self) -> bool {
        self.policy().is_some()
    }

    /// Returns whether the server, as far as it is known, keeps what it has.
    pub(super) fn keeps(&self) -> bool {
        self.0.lock().as_ref().is_none_or(|said| said.keeping == Keeping::Keeps)
    }
}

impl Connection {
    /// Fails if the server throws away locks. One that said so a while ago is asked again: it may have been mended.
    pub(super) async fn keeps_locks(self: &Arc<Self>) -> Result<()> {
        let now = self.connector.environment().now();
        if self.eviction.policy().is_some_and(|(_, at)| now.since(at) >= MENDED) {
            self.look_for_eviction().await?;
        }
        self.must_keep_locks().await
    }

    /// Connects, unless there is a connection, and fails if the server throws away locks.
    pub(super) async fn must_keep_locks(self: &Arc<Self>) -> Result<()> {
        let live = self.live().await?;
        self.eviction.policy().map_or(Ok(()), |(policy, _)| Err(refused(&live.address, &policy)))
    }

    /// Fails if a script has found nothing where it looked, on a server that throws away locks.
    pub(super) fn was_kept(&self, live: &Live<Opened>, answer: &Value) -> Result<()> {
        let Some(policy) = refusal_of_script(answer) else { return Ok(()) };
        let refused = refused(&live.address, &policy);
        self.note(live, Keeping::Evicts(policy));
        Err(refused)
    }

    /// Asks the server whether it keeps locks.
    pub(super) async fn look_for_eviction(self: &Arc<Self>) -> Result<()> {
        let mut live = self.live().await?;
        let said = self.connector.answer(Keeping::ask(&mut live.connection)).await;
        let keeping = said.map_err(|error| self.failed(&live, error))?;
        self.note(&live, keeping);
        Ok(())
    }

    /// Notes what a server has said, unless another one has taken over meanwhile, which was asked when it did.
    fn note(&self, live: &Live<Opened>, keeping: Keeping) {
        if self.is_current(live) {
            self.eviction.note(&live.address, keeping, self.connector.environment().now());
        }
    }
}

/// Returns the policy with which a script refuses; nothing if it has done what it was asked for.
fn refusal_of_script(answer: &Value) -> Option<String> {
    let Value::Array(words) = answer else { return None };
    match &words[..] {
        [Value::BulkString(word), Value::BulkString(policy)] if word == EVICTS.as_bytes() => {
            Some(String::from_utf8_lossy(policy).into_owned())
        }
        _ => None,
    }
}

/// Returns the error of a request that was not sent to such a server, or whose script has refused
/// to write anything on it.
fn refused(server: &Address, policy: &str) -> Error {
    let message = format!(
        "the server at {server} throws away keys when its memory is full, locks among them (maxmemory-policy is {policy}): set maxmemory-policy to \
         noeviction on it, or accept that locks are lost and granted again with eviction=lost_locks_accepted"
    );
    Error::new(ErrorKind::Config, message).with_engine(crate::NAME).without_effect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_evicts_that_has_a_limit_and_a_policy() {
        let of = |limit: &str, policy: &str| {
            Keeping::of(&format!("used_memory:9\r\nmaxmemory:{limit}\r\nmaxmemory_policy:{policy}\r\n"))
        };
        assert_eq!(of("0", "allkeys-lru"), Keeping::Keeps);
        assert_eq!(of("100", "noeviction"), Keeping::Keeps);
        for policy in ["allkeys-lru", "volatile-ttl", "one-of-tomorrow"] {
            assert_eq!(of("100", policy), Keeping::Evicts(policy.to_owned()));
        }
        assert_eq!(
            Keeping::of("maxmemory_policy:allkeys-lru\r\n"),
            Keeping::Evicts("allkeys-lru".to_owned())
        );
        assert_eq!(Keeping::of("redis_version:7.2.4\r\n"), Keeping::Unknown);
    }

    #[test]
    fn only_a_refusal_of_a_script_is_read_as_one() {
        let words = |words: &[&str]| {
            let words = words.iter().map(|word| Value::BulkString(word.as_bytes().to_vec()));
            Value::Array(words.collect())
        };
        assert_eq!(refusal_of_script(&words(&["evicts", "allkeys-lru"])).as_deref(), Some("allkeys-lru"));
        for other in [words(&["busy"]), words(&["evicts"]), words(&[]), Value::Int(1)] {
            assert_eq!(refusal_of_script(&other), None);
        }
    }
}
