//! What several tests of the keeper need: a clock that can be put forward, and an engine that notes what it is asked.

#![allow(dead_code, unused_imports, reason = "each of the tests uses a part")]

mod asked;
mod between;
mod log;
mod warped;

pub(crate) use asked::{Asked, Notes};
pub(crate) use between::{Gate, Meanwhile};
pub(crate) use log::Log;
pub(crate) use warped::Warped;
