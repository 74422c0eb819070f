//! Runs three real Cassandra nodes that are one cluster, and a fourth, alone, that requires TLS and a password.

mod answer;
mod cluster;
mod cql;
mod deaf;
mod faults;
mod node;
mod nodetool;
mod ready;
mod thesis;
mod tls;

use self::cluster::Cluster;
pub(crate) use self::faults::{NodeAction, change_node, set_clock};
use crate::{
    engine::{Bench, Engine},
    jars::Jars,
    rooms::{HANDED_OVER, Plan},
};

pub(crate) static ENGINE: Engine = Engine {
    name: "cassandra",
    // The tests of the facade's programs need Cassandra.
    packages: &["ylock", "ylock-benchmark", "ylock-engine-cassandra", "ylock-simulation", "ylock-cli"],
    stores: Some(|places| vec![Box::new(Cluster::ring(places)), Box::new(Cluster::login(places))]),
    prepare: |places| JARS.software(places).map(drop),
    url_end: "/ylock_observe?schema=create",
    own_place: Some(|place| format!("/{place}?schema=create")),
    benches: &[Bench::new("cassandra", "bench -p ylock-engine-cassandra --bench cassandra"), thesis::BENCH],
    drivers: &["scylla"],
    rooms: &[Plan {
        sources: "engine-cassandra/src",
        floors: &[&["driver_api"], &["engine"], &["driver", "own_rows"], &["algorithm"]],
        exceptions: &[HANDED_OVER],
    }],
    suite_runs_alone: true,
    ..Engine::BASE
};

const JARS: Jars = Jars {
    name: "Cassandra",
    version: "5.0.7",
    pom: include_str!("assets/pom.xml"),
    server: "cassandra-all",
    megabytes: 67,
};
