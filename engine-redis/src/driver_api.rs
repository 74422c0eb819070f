//! Locks on the server of a client that the program has already: feature `redis-1`, for version 1 of the crate `redis`.
//!
//! The only part of this crate that shows types of its driver.

use redis::Client;

use crate::RedisOptions;

/// Returns options for the server of this client: address, login, database and TLS are the client's, certificates of its own included, and
/// so are sockets of the operating system.
///
/// For a client with TLS switch on the Cargo feature `redis-tls` of `ylock` too: where several crypto providers of `rustls` are compiled in,
/// the driver panics unless one is installed for the process. With the feature aws-lc-rs is, if the program has installed none.
///
/// Connections of the program are not used: a request that blocks on one of them, such as `BLPOP`, would delay renewals until locks are
/// lost. So each client for locks has two connections of its own, and makes them again when they broke or their runtime ended.
///
/// # Examples
/// A queue and the locks of its jobs are on the same server:
/// ```no_run
/// use ylock::Ylock;
/// use ylock::redis::{RedisEngine, driver_api};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let client = redis::Client::open("redis+unix:///run/redis.sock")?;
/// let engine = RedisEngine::connect(&driver_api::options(&client).with_prefix("jobs")).await?;
/// let jobs = Ylock::new(engine).locks("jobs");
/// jobs.write("nightly").run(|_| async { /* … */ }).await?;
/// # Ok(()) }
/// ```
pub fn options(client: &Client) -> RedisOptions {
    RedisOptions::of_server(client.get_connection_info().clone())
}
