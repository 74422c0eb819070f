//! The file engine, which needs no servers.

use crate::{
    engine::{Bench, Engine},
    rooms::Plan,
};

pub(crate) static ENGINE: Engine = Engine {
    name: "file",
    packages: &["ylock-engine-file"],
    benches: &[Bench::new("file", "bench -p ylock-engine-file --bench file")],
    // `rustix` is in every build: the core reads its clock by it.
    drivers: &["crc32fast"],
    rooms: &[Plan {
        sources: "engine-file/src",
        floors: &[
            &["engine"],
            &["attend"],
            &["acquire", "inspect", "renew", "sweep"],
            &["release"],
            &["client"],
            &["driver"],
        ],
        exceptions: &[],
    }],
    ..Engine::BASE
};
