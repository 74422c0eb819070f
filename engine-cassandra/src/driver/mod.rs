//! The [`Store`](crate::algorithm::store::Store) over a real cluster. Only this part and `driver_api` know the driver; what is public here
//! shows nothing of it.

mod balancing;
mod clocks;
mod columns;
mod connected;
mod cql;
mod diagnose;
mod errors;
mod hedges;
mod nodes;
mod page;
mod rows;
mod schema;
mod session;
mod statements;
mod table;
mod values;

pub(crate) use scylla::client::session::Session;
pub use table::Table;
