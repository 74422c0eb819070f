//! Metrics of ylock.

pub mod catalogue;
