//! An etcd cluster: a leader and its followers, three members by default, and each client's way to them.
//!
//! Writes go to the leader and are done when a majority has them; the members apply them one after the other, each when it hears of them.
//! Transactions that only look are answered by the member that was asked, when a majority has told the leader that it still leads. A lease ends one
//! time to live after the leader has made it, or has last prolonged it, by the leader's clock; a new leader gives every lease its whole time.
//!
//! - `data`: what each member keeps, as etcd does with transactions and leases. Held to a real server by `tests/real_etcd`.
//! - `member`, `leading`: what one member knows, and what a leader knows besides. `event`: what happens, and what is said.
//! - `cluster`: the members together, and what is made of an event. `proposing`, `reading`, `prolonging`: writes, looks, leases. `talking`: what
//!   members say to each other. `electing`: which of them leads, and what goes wrong with members. `rebuilding`: the cluster that is set up anew.
//! - `serving`, `wire`: how clients are served, over which connections. `client`: a client's end, as the engine uses it.

pub mod client;
pub mod cluster;
mod data;
mod electing;
mod event;
mod leading;
mod member;
mod prolonging;
mod proposing;
mod reading;
mod rebuilding;
mod serving;
mod talking;
mod wire;

pub use client::{Client, Mistakes};
pub use cluster::{Cluster, Rules};

/// The number of a connection of a client to a member, over all clients.
type ConnectionId = u64;
/// The number of a member.
type MemberId = usize;
/// The number of a lease.
type LeaseId = i64;
