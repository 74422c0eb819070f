//! Redis engine of `ylock`: `redis://host:port/db`.
#![doc = "\n"]
#![doc = include_str!("../guarantees.md")]

pub mod options;
#[doc(hidden)]
pub mod scripts;

mod driver;
mod engine;
mod inspect;
mod place;
mod waiting;

pub use engine::RedisEngine;
pub use options::RedisOptions;

/// The engine's name: in errors, as URL scheme and as metric label.
pub(crate) const NAME: &str = "redis";
