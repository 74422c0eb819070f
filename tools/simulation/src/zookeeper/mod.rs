//! A ZooKeeper ensemble: a leader and its followers, three servers by default, and the driver of each client.
//!
//! Writes go to the leader and are done when a majority has them; the servers apply them one after the other, each when it hears of
//! them. Reads are answered by the one server to which the client is connected. A session ends one timeout after the *leader* last heard of
//! it: a server collects the signs of life that it gets, and reports them when the leader asks, every half tick.

mod agreement;
mod connection;
pub mod driver;
mod election;
pub mod ensemble;
mod event;
mod leader;
mod line;
mod mailbox;
mod server;
mod service;
pub mod session;
mod step;
mod tree;
mod upkeep;
mod words;

pub use driver::Mistakes;
pub use ensemble::{Ensemble, Rules};
pub use session::Clients;

/// The number of a session.
type SessionId = u64;
/// The number of a connection of a client to a server, over all clients.
type ConnectionId = u64;
/// The number of a server.
type ServerId = usize;
