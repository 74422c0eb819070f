//! The algorithms of the thesis, over a small [`store`] trait. Nothing here knows the driver, and all time comes from the
//! environment.
//!
//! - `acquire`: the ways in. `acquire::queue`: `GetLock` and `TryGetLock`, readable beside Listings 6 and 7; `acquire::shadow_rows`: the
//!   lock that the queue replaces, Listings 3 and 4, as a baseline. `pace`: how often a waiter looks.
//! - `renew`: renewal of a lease, section 5.3. `release`: the way out. `inspect`: who holds and who waits; and revocation.
//! - `notebook`: which heartbeats of other clients were seen, and since when, so that what is dead can be buried (`own_row/burying.rs`).
//! - `judge`: what one look means; safety and order in one place.
//! - `line`, `told`, `mute`: whom a client tells that it has entered or left; whether waiters are told here, and which client does not tell.
//! - `own_row`: the client's own row, and the only place that writes it.
//! - `runs`: the last runs of jobs, which are no locks.
//! - `clock`: tickets, tokens and write timestamps.

pub(crate) mod acquire;
pub mod clock;
pub(crate) mod inspect;
pub(crate) mod judge;
mod line;
mod mute;
pub(crate) mod notebook;
pub(crate) mod own_row;
mod pace;
pub(crate) mod release;
pub(crate) mod renew;
#[cfg(test)]
pub(crate) mod rows_for_tests;
pub mod runs;
pub mod store;
mod told;
