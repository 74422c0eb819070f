//! The only part that knows the driver.

mod connection;
mod errors;
mod inbox;
pub(crate) mod scripts;
mod server;

pub(crate) use connection::Connection;
pub(crate) use inbox::{Inbox, Place, Told};
pub(crate) use scripts::{Answer, Call};
