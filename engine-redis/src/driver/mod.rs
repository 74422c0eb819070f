//! The part that talks to the servers, with the crate `redis` as its driver.

mod cluster;
mod codes;
mod connection;
mod connector;
mod diagnose;
mod errors;
mod eviction;
mod push_connection;
pub(crate) mod scripts;
mod sentinel;
mod server;
mod slots;
mod store;
mod subscriber;
mod version;

pub(crate) use connector::Surroundings;
#[cfg(feature = "redis-1")]
pub(crate) use connector::address_of;
pub(crate) use redis::ConnectionInfo;
pub(crate) use scripts::{Answer, Call};
pub(crate) use store::Store;
pub(crate) use subscriber::{Subscriber, SubscriberEvent};
