//! The holder of a lock in the program's own transactions on etcd, whichever crate it sends them with.

use std::sync::Arc;

use ylock_core::environment::SystemEnvironment;
use ylock_core::{Error, ErrorKind, Lease, Result};

use crate::EtcdOptions;
use crate::algorithm::client::Client;
use crate::algorithm::owners;
use crate::driver::Servers;

/// A way to ask which keys stand for the holders of locks. It holds no lock itself, and can be used for as long as the program runs.
#[derive(Clone, Debug)]
pub struct Owners {
    client: Arc<Client>,
}

/// A comparison for a transaction: it holds for as long as the lock is held under the lease that it was made from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OwnerCompare {
    /// The key to compare.
    pub key: Vec<u8>,
    /// Its `create_revision`, which must be equal.
    pub create_revision: i64,
}

impl Owners {
    /// Connects to the cluster that keeps the locks.
    ///
    /// # Errors
    /// As [`EtcdEngine::connect`](crate::EtcdEngine::connect).
    pub async fn connect(options: &EtcdOptions) -> Result<Self> {
        options.check()?;
        let environment = SystemEnvironment::shared();
        let servers = Servers::of(options, &environment)?;
        servers.connected().await?;
        Ok(Self { client: Client::new(Arc::new(servers), environment, options) })
    }

    /// Returns the comparison that makes a transaction of the program fail if the lease is not that of the present grant any more: so no write comes
    /// after the lock was lost, with no moment between the check and the write. Asks the servers once.
    ///
    /// The store knows the grant of a client, and not which of its tasks has it: after a hand-over inside the client the comparison of the task before
    /// holds as well. Where that matters, acquire with `hand_over=0`.
    ///
    /// # If the lock is lost
    /// The comparison does not hold any more, from the moment on at which another client may be let in.
    ///
    /// # Errors
    /// [`Lost`](ErrorKind::Lost) if the lock is not held under this lease any more; [`Unavailable`](ErrorKind::Unavailable) if the servers do not
    /// answer.
    ///
    /// # Examples
    /// A balance is written only by the holder of its lock:
    /// ```no_run
    /// use ylock::etcd::EtcdOptions;
    /// use ylock::etcd::driver_api::Owners;
    /// use ylock::url::Host;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
    /// let owners = Owners::connect(&EtcdOptions::new([Host::new("10.0.0.1", None)])).await?;
    /// let ylock = ylock::connect("etcd://10.0.0.1").await?;
    /// let guard = ylock.locks("accounts").write("4711").await?;
    /// let compare = owners.compare(&guard.lease()).await?;
    /// // With whichever crate sends the program's transactions:
    /// // if create_revision(compare.key) == compare.create_revision then put(…)
    /// # Ok(()) }
    /// ```
    pub async fn compare(&self, lease: &Lease) -> Result<OwnerCompare> {
        let lost = || {
            Error::new(ErrorKind::Lost, "the lock is not held under this lease any more")
                .with_engine(crate::NAME)
        };
        let token = lease.token().ok_or_else(lost)?;
        let found = owners::find(&self.client, lease.key(), token).await?;
        let (key, create_revision) = found.ok_or_else(lost)?;
        Ok(OwnerCompare { key, create_revision })
    }
}
