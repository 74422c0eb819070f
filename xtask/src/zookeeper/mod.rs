//! Runs real ZooKeeper servers, on ports that were free when they started: one alone, and an ensemble of three.

mod ensemble;
mod server;
mod single;

use std::path::PathBuf;

use anyhow::Result;

use self::{ensemble::Ensemble, single::Single};
use crate::{
    file_lock::FileLock,
    jars::Jars,
    places::Places,
    store::Stores,
    tools::{self, Java},
};

pub(crate) fn stores(places: &Places) -> Stores {
    Stores::new(places, vec![Box::new(Single::new(places)), Box::new(Ensemble::new(places))])
}

/// Returns variables for tests that start servers of their own, to break them: the Java program, and the folder of the jars.
pub(crate) fn own_servers(places: &Places) -> Result<[(&'static str, String); 2]> {
    let _alone = FileLock::exclusive(&places.change_lock())?;
    let Software { java, jars } = software(places)?;
    Ok([
        ("YLOCK_TEST_JAVA", java.program.display().to_string()),
        ("YLOCK_TEST_ZOOKEEPER_JARS", jars.display().to_string()),
    ])
}

/// The programs that are needed to start a server.
#[derive(Debug)]
struct Software {
    java: Java,
    jars: PathBuf,
}

fn software(places: &Places) -> Result<Software> {
    Ok(Software { java: tools::java()?, jars: JARS.get(places)? })
}

const JARS: Jars = Jars {
    name: "ZooKeeper",
    version: "3.9.5",
    pom: include_str!("assets/pom.xml"),
    server: "zookeeper",
    megabytes: 20,
};
