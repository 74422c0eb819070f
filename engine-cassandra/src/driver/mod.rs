//! The [`Store`](crate::algorithm::store::Store) over a real cluster. Only this part and `driver_api` know the driver.

mod balancing;
mod clocks;
mod connected;
mod errors;
mod hedges;
mod nodes;
mod rows;
mod schema;
mod session;
mod statements;
mod table;
mod tls;
mod values;

pub(crate) use scylla::client::session::Session;
pub use table::Table;
