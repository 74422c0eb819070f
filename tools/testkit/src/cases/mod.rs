//! The cases. Each file is about one thing, each function is one expectation, and its name is a sentence.

pub mod basics;
pub mod cancel;
pub mod cleanup;
pub mod connection;
pub mod contract;
pub mod crash;
pub mod downgrade;
pub mod election;
pub mod fencing;
pub mod growing;
pub mod keys;
pub mod layers;
pub mod lease;
pub mod loss;
pub mod many;
pub mod names;
pub mod next;
pub mod order;
pub mod queue;
pub mod read_write;
pub mod reentry;
pub mod reentry_modes;
pub mod runtimes;
pub mod semaphores;
pub mod tries;
pub mod workloads;
