//! The engine that has no servers, and with it what is of no engine alone: the core.

use crate::engine::{Bench, Engine};

const MANY: Bench = Bench {
    help: Some("Several locks one by one, and at once, on every engine (`-- ENGINE... PART...` for some)"),
    of_all: true,
    ..Bench::new("many", "bench -p ylock --all-features --bench many")
};

pub(crate) static ENGINE: Engine = Engine {
    name: "memory",
    packages: &["ylock", "ylock-cli", "ylock-core", "ylock-metrics", "ylock-testkit"],
    benches: &[Bench::new("core", "bench -p ylock-testkit --bench core"), MANY],
    ..Engine::BASE
};
