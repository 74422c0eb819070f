//! Runs a real PostgreSQL server, on a port that was free when it started.

mod program;
mod server;

use anyhow::Result;

use self::server::Server;
use crate::{
    engine::{Bench, Engine},
    places::Places,
    rooms::Plan,
    store::Variable,
};

pub(crate) static ENGINE: Engine = Engine {
    name: "postgres",
    packages: &["ylock-engine-postgres"],
    stores: Some(|places| vec![Box::new(Server::new(places))]),
    prepare: |_| program::folder().and_then(|_| program::pooler()).map(drop),
    own_servers,
    own_place: Some(|place| format!("?namespace={place}")),
    benches: &[Bench::new("postgres", "bench -p ylock-engine-postgres --bench postgres")],
    drivers: &["tokio_postgres"],
    rooms: &[Plan {
        sources: "engine-postgres/src",
        floors: &[
            &["driver_api"],
            &["engine"],
            &["acquire", "renew", "inspect", "sweep"],
            &["release", "runs", "keys"],
            &["client"],
            &["words"],
            &["driver"],
        ],
        exceptions: &[],
    }],
    ..Engine::BASE
};

/// Tells tests where the programs are: they start servers, standbys and backups of their own.
fn own_servers(_: &Places) -> Result<Vec<Variable>> {
    Ok(vec![
        ("YLOCK_TEST_POSTGRES_PROGRAMS", program::folder()?.display().to_string()),
        ("YLOCK_TEST_PGBOUNCER", program::pooler()?.display().to_string()),
    ])
}
