//! The figures of the engine, against two prepared updates of one row by the same driver over one connection, in the same run.
//!
//! `cargo xtask bench postgres [-- ARM...]`; without a name all arms run. Where it says so, once with commits that reach the disk and once without.
#![allow(
    clippy::disallowed_methods,
    reason = "a benchmark measures real time, and its workers are its own tasks"
)]
#![allow(missing_docs, reason = "a benchmark has no users")]

mod advisory;
mod crash;
mod hand_over;
mod one_name;
mod raw;
mod stress;
mod uncontended;

use std::time::Duration;

use tokio_postgres::{Client, NoTls};
use ylock_core::Options;
use ylock_core::url::EngineUrl;
use ylock_engine_postgres::{PostgresEngine, PostgresOptions};
use ylock_testkit::measure::{self, Arm, Measured};

const ARMS: [Arm; 6] = [
    Arm::both_ways("uncontended"),
    Arm::both_ways("hand-over"),
    Arm::once("advisory"),
    Arm::once("one-name"),
    Arm::once("crash"),
    Arm::once("stress"),
];

fn main() {
    measure::run(&ARMS, async |words| match *words {
        ["uncontended"] => twice(uncontended::run).await,
        ["hand-over"] => twice(hand_over::run).await,
        ["advisory"] => twice(advisory::run).await,
        ["one-name"] => one_name::run().await,
        ["crash"] => crash::run().await,
        ["stress"] => stress::run().await,
        [stress::ROLE, folder, name] => stress::work(folder, name).await,
        [crash::ROLE, group] => crash::hold_until_killed(group).await,
        _ => panic!("{words:?}: the arms are {:?}", ARMS.map(Arm::name)),
    });
}

/// Runs with commits that reach the disk, and without.
async fn twice(arm: impl AsyncFn()) {
    for syncs in [true, false] {
        let server = connect().await;
        let setting = format!("alter system set fsync = {}", if syncs { "on" } else { "off" });
        server.batch_execute(&setting).await.expect("a superuser");
        server.batch_execute("select pg_reload_conf()").await.expect("a superuser");
        while server
            .query_one("select current_setting('fsync') = 'on'", &[])
            .await
            .expect("an answer")
            .get::<_, bool>(0)
            != syncs
        {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        println!("fsync={}", if syncs { "on" } else { "off" });
        arm().await;
        server.batch_execute("alter system reset fsync").await.expect("a superuser");
        server.batch_execute("select pg_reload_conf()").await.expect("a superuser");
    }
}

pub(crate) async fn client(lease: Duration) -> Measured {
    let engine = PostgresEngine::connect(&options(lease)).await.expect("the server answers");
    Measured::new(engine, lease, PostgresEngine::requests)
}

/// A connection without ylock.
pub(crate) async fn connect() -> Client {
    let (client, connection) = tokio_postgres::connect(&url(), NoTls).await.expect("the server answers");
    tokio::spawn(connection);
    client
}

pub(crate) fn url() -> String {
    let address = std::env::var("YLOCK_TEST_POSTGRES");
    format!("postgres://{}", address.unwrap_or_else(|_| "postgres@127.0.0.1:5432/postgres".to_owned()))
}

fn options(lease: Duration) -> PostgresOptions {
    let url = EngineUrl::parse(&url()).expect("a URL");
    PostgresOptions::from_url(&url, &Options::default()).expect("options").with_lease(lease)
}
