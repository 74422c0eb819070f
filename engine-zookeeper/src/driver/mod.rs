//! The only part that knows the driver.

mod connection;
mod errors;
mod heart;
mod session;

pub(crate) use connection::Connection;
pub(crate) use errors::{Fault, had_no_effect, to_error};
pub(crate) use session::{Made, Session, Told};
