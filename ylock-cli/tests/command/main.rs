//! The command `ylock`, as it is installed: real processes, real signals, on a folder of this host.
#![cfg(all(target_os = "linux", feature = "file"))]
#![allow(
    clippy::disallowed_methods,
    reason = "a test stands outside: it tells the time and starts processes"
)]

mod folder;
mod hostile;
mod json;
mod looks;
mod once_per;
mod run;
mod signals;
mod stopped;
mod stores;
#[allow(dead_code, reason = "the tests on servers use more of it")]
mod support;
mod terminal;
mod top;
