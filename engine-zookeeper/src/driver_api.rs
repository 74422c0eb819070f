//! Sessions by a connector of the program's: feature `zookeeper-client-0-11`, for version 0.11 of the crate `zookeeper-client`.
//!
//! The only part of this crate that shows types of its driver.

use ylock_core::url::Host;
use zookeeper_client::Connector;

use crate::ZookeeperOptions;

/// Returns options for clients whose sessions are made by this connector: with its logins, among them those by SASL and Kerberos, its
/// certificates, and the version of the servers that it was told.
///
/// A session of the program is not used: its end would be the end of all locks, and a client makes another one when its session has ended.
/// So the connector must name no session, and not be detached: then `close` would leave everything until the session times out.
/// [`session`](ZookeeperOptions::with_session) is the timeout, not the connector's.
///
/// For a connector with TLS call [`with_tls`](ZookeeperOptions::with_tls) too, because a connector tells no caller that it has TLS: with
/// `PlatformRoots` the authorities are those of the connector. Without it connecting fails, with an error that says so.
///
/// # Examples
/// Invoices are locked in an ensemble in which clients are told apart by a login:
/// ```no_run
/// use ylock::Ylock;
/// use ylock::url::Host;
/// use ylock::zookeeper::{Acl, ZookeeperEngine, driver_api};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let connector = zookeeper_client::Client::connector().with_auth("digest", b"billing:secret");
/// let host = Host::new("10.0.0.1", None);
/// let options = driver_api::options(connector, [host]).with_acl(Acl::Creator);
/// let invoices = Ylock::new(ZookeeperEngine::connect(&options).await?).locks("invoices");
/// invoices.write("2026-11").run(|_| async { /* … */ }).await?;
/// # Ok(()) }
/// ```
pub fn options(connector: Connector, hosts: impl IntoIterator<Item = Host>) -> ZookeeperOptions {
    ZookeeperOptions::new(hosts).with_connector(connector)
}
