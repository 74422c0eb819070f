//! Runs real ZooKeeper servers, on ports that were free when they started: one alone, and an ensemble of three.

mod ensemble;
mod server;
mod single;

use anyhow::Result;

use self::{ensemble::Ensemble, single::Single};
use crate::{
    engine::{Bench, Engine},
    file_lock::FileLock,
    jars::{Jars, Software},
    places::Places,
    rooms::{HANDED_OVER, Plan},
    store::Variable,
};

pub(crate) static ENGINE: Engine = Engine {
    name: "zookeeper",
    packages: &["ylock-engine-zookeeper", "ylock-cli"],
    stores: Some(|places| vec![Box::new(Single::new(places)), Box::new(Ensemble::new(places))]),
    prepare: |places| JARS.software(places).map(drop),
    own_servers,
    own_place: Some(|place| format!("/{place}")),
    benches: &[Bench::new("zookeeper", "bench -p ylock-engine-zookeeper --bench zookeeper")],
    drivers: &["zookeeper-client"],
    rooms: &[Plan {
        sources: "engine-zookeeper/src",
        floors: &[&["driver_api"], &["engine"], &["driver"], &["algorithm"]],
        exceptions: &[HANDED_OVER],
    }],
    ..Engine::BASE
};

/// Returns the Java program and the folder of the jars.
fn own_servers(places: &Places) -> Result<Vec<Variable>> {
    let _alone = FileLock::exclusive(&places.change_lock())?;
    let Software { java, jars } = JARS.software(places)?;
    Ok(vec![
        ("YLOCK_TEST_JAVA", java.program.display().to_string()),
        ("YLOCK_TEST_ZOOKEEPER_JARS", jars.display().to_string()),
    ])
}

const JARS: Jars = Jars {
    name: "ZooKeeper",
    version: "3.9.5",
    pom: include_str!("assets/pom.xml"),
    server: "zookeeper",
    megabytes: 20,
};
