//! Engines that answer at once.

mod asked;
mod panics;
mod wakers;
mod windows;
