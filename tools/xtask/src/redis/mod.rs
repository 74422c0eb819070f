//! Runs real Redis servers, on ports that were free when they started: one alone, a cluster, and a master that Sentinels
//! watch.

mod answer;
mod cluster;
mod sentinels;
mod server;
mod single;

use std::{path::PathBuf, process::Command};

use anyhow::Result;

use self::{cluster::Cluster, sentinels::Sentinels, single::Single};
use crate::{
    engine::{Bench, Engine},
    rooms::{HANDED_OVER, Plan},
    tools,
};

pub(crate) static ENGINE: Engine = Engine {
    name: "redis",
    packages: &["ylock-engine-redis", "ylock-cli"],
    stores: Some(|places| {
        vec![
            Box::new(Single::new(places.root().join("redis"))),
            Box::new(Cluster::new(places.root().join("redis-cluster"))),
            Box::new(Sentinels::new(places.root().join("redis-sentinels"))),
        ]
    }),
    prepare: |_| program().map(drop),
    own_place: Some(|place| format!("?prefix={place}")),
    benches: &[Bench::new("redis", "bench -p ylock-engine-redis --bench redis")],
    drivers: &["redis"],
    rooms: &[Plan {
        sources: "engine-redis/src",
        floors: &[
            &["driver_api"],
            &["engine"],
            &["acquire", "renew", "inspect"],
            &["release", "runs", "keys"],
            &["client"],
            &["driver"],
        ],
        exceptions: &[HANDED_OVER],
    }],
    ..Engine::BASE
};

/// Finds or installs the program of the server.
fn program() -> Result<PathBuf> {
    tools::find_or_install(find, || vec!["redis-server"])
}

fn find() -> Option<PathBuf> {
    let program = PathBuf::from("redis-server");
    let answer = Command::new(&program).arg("--version").output();
    answer.is_ok_and(|output| output.status.success()).then_some(program)
}
