//! Runs real etcd servers, on ports that were free when they started: one alone, and a cluster of three.

mod member;
mod program;
mod stores;

use anyhow::Result;

use self::{
    program::program,
    stores::{Cluster, Single},
};
use crate::{
    engine::{Bench, Engine},
    file_lock::FileLock,
    places::Places,
    rooms::Plan,
    store::Variable,
};

pub(crate) static ENGINE: Engine = Engine {
    name: "etcd",
    packages: &["ylock-engine-etcd"],
    stores: Some(|places| vec![Box::new(Single::new(places)), Box::new(Cluster::new(places))]),
    prepare: |places| program(places).map(drop),
    own_servers,
    own_place: Some(|place| format!("/{place}")),
    benches: &[Bench::new("etcd", "bench -p ylock-engine-etcd --bench etcd")],
    drivers: &["tonic", "tonic-prost", "prost"],
    rooms: &[Plan {
        sources: "engine-etcd/src",
        floors: &[&["driver_api"], &["engine"], &["driver"], &["algorithm"]],
        exceptions: &[],
    }],
    ..Engine::BASE
};

/// Returns the program of the server.
fn own_servers(places: &Places) -> Result<Vec<Variable>> {
    let _alone = FileLock::exclusive(&places.change_lock())?;
    Ok(vec![("YLOCK_TEST_ETCD_PROGRAM", program(places)?.display().to_string())])
}
