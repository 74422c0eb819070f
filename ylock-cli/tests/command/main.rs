//! The command `ylock`, as it is installed: real processes, real signals, on a folder of this host.
#![cfg(all(target_os = "linux", feature = "file"))]
#![allow(
    clippy::disallowed_methods,
    reason = "a test stands outside: it tells the time and starts processes"
)]

mod hostile;
mod looks;
mod once_per;
mod run;
mod signals;
mod stores;
mod support;
mod terminal;
mod top;
