//! The part that talks to the server, with the crate `tokio-postgres` as its driver.

mod calls;
mod connection;
mod connector;
mod diagnose;
mod errors;
mod layout;
mod listener;
mod server;
mod session;
mod store;
#[cfg(feature = "tls")]
mod tls;
mod warmup;

pub(crate) use calls::{Answer, Call, Fields, Function, Value};
pub(crate) use errors::unavailable;
pub(crate) use listener::{Heard, Listener};
pub(crate) use store::Store;
