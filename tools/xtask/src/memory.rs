//! The engine that has no servers, and with it what is of no engine alone: the core.

use crate::engine::{Bench, Engine};

pub(crate) static ENGINE: Engine = Engine {
    name: "memory",
    packages: &["ylock", "ylock-core", "ylock-metrics", "ylock-testkit"],
    benches: &[Bench::new("core", "bench -p ylock-testkit --bench core")],
    ..Engine::BASE
};
