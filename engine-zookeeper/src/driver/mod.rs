//! The part that talks to the servers, with the crate `zookeeper-client` as its driver.

mod connection;
mod dialer;
mod ended;
mod errors;
mod heartbeat;
mod line;
mod operator;
mod requests;
mod sent;
mod session;

pub(crate) use connection::Connection;
pub(crate) use errors::{Fault, had_no_effect, to_error};
pub(crate) use requests::{Made, Told};
pub(crate) use sent::Sent;
pub(crate) use session::Session;
pub(crate) use zookeeper_client::Connector;
