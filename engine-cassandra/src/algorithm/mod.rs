//! The algorithms of the thesis, over a small [`store`] trait. Nothing here knows the driver, a clock or a thread.

pub mod store;
