//! Replicas, three by default: last write wins per cell, reads and writes at quorum.

mod cells;
pub mod cluster;
pub mod connection;
pub mod heartbeats;
mod mutation;
pub mod network;
mod replica;
mod ring;

pub use cluster::{Cluster, Weather};
pub use connection::Connection;
pub use network::{HintWeather, Network, Wire};
pub use ring::Change;
