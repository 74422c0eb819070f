//! Seeds that must not break anything, and what the simulated stores promise. All of it only computes.

mod built;
mod cassandra;
mod etcd;
mod forgetting;
mod hints;
mod keeper;
mod listing;
mod model;
mod observed;
mod order;
mod quick;
mod redis;
mod ring;
mod sets;
mod shown_again;
#[path = "../support/mod.rs"]
mod support;
mod time;
mod tries;
mod zookeeper;
