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

use std::fmt;

pub(crate) use connection::Connection;
pub(crate) use errors::{Fault, had_no_effect, to_error};
pub(crate) use requests::{Made, Told};
pub(crate) use sent::Sent;
pub(crate) use session::Session;

pub(crate) use zookeeper_client::Connector;

/// A connector that the program has handed over. Its own `Debug` shows the password of a login by SASL.
#[derive(Clone)]
pub(crate) struct HandedOver(pub(crate) Connector);

impl fmt::Debug for HandedOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connector")
    }
}
