//! The algorithms of the thesis, over a small [`store`] trait. Nothing here knows the driver, and all time comes from the
//! environment.
//!
//! - [`queue`]: `GetLock` and `TryGetLock`, readable beside Listings 6 and 7.
//! - [`shadow_rows`]: the lock that the queue replaces, Listings 3 and 4, as a baseline.
//! - [`judge`]: what one look means; safety and order in one place.
//! - [`seat`]: the client's own row, and the only place that writes it.
//! - [`lease`]: renewal, section 5.3.
//! - [`clock`]: tickets, tokens and write timestamps.
//! - `pace`: how often a waiter looks.

pub mod clock;
pub mod judge;
pub mod lease;
mod pace;
pub mod queue;
pub mod seat;
pub mod shadow_rows;
pub mod store;
