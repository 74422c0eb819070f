//! The figures of the engine, against the same requests sent by hand on one session of the same driver, in the same run.
//!
//! `cargo xtask bench zookeeper [-- ARM...]`; without a name all arms run. The servers that it starts do not wait for their disk
//! (`forceSync=no`), so what the client adds weighs more here than in production.
#![allow(
    clippy::disallowed_methods,
    reason = "a benchmark measures real time, and its workers are its own tasks"
)]
#![allow(missing_docs, reason = "a benchmark has no users")]

mod crash;
mod hand_over;
mod held;
mod stress;
mod uncontended;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use ylock_core::url::Host;
use ylock_engine_zookeeper::{ZookeeperEngine, ZookeeperOptions};
use ylock_testkit::measure::{self, Arm, Measured};

const ARMS: [Arm; 5] = [
    Arm::both_ways("uncontended"),
    Arm::both_ways("hand-over"),
    Arm::once("crash"),
    Arm::once("held"),
    Arm::once("stress"),
];
const SESSION: Duration = Duration::from_secs(10);
const LEASE: Duration = Duration::from_secs(8);

fn main() {
    measure::run(&ARMS, async |words| match *words {
        ["uncontended"] => uncontended::run().await,
        ["hand-over"] => hand_over::run().await,
        ["crash"] => crash::run().await,
        ["held"] => held::run().await,
        ["stress"] => stress::run().await,
        [crash::ROLE, group] => crash::hold_until_killed(group).await,
        [stress::ROLE, folder, name] => stress::work(folder, name).await,
        _ => panic!("{words:?}: the arms are {:?}", ARMS.map(Arm::name)),
    });
}

/// A client; the requests that the server received since it began count as its own.
pub(crate) async fn client() -> Measured {
    client_with(SESSION, LEASE).await
}

pub(crate) async fn client_with(session: Duration, lease: Duration) -> Measured {
    let host = address();
    let (name, port) = host.rsplit_once(':').expect("host:port");
    let host = Host::new(name, port.parse::<u16>().ok());
    let options =
        ZookeeperOptions::new(vec![host]).with_base("/ylock-bench").with_lease(lease).with_session(session);
    let engine = ZookeeperEngine::connect(&options).await.expect("the server answers");
    Measured::new(engine, lease, |_| received())
}

/// The number of requests that the server received from all clients together.
fn received() -> u64 {
    let line = ask("srvr").lines().find_map(|line| line.strip_prefix("Received: ").map(str::to_owned));
    line.and_then(|count| count.trim().parse().ok()).expect("a count")
}

/// Returns the server's answer to one of its four letter words.
pub(crate) fn ask(word: &str) -> String {
    let mut stream = TcpStream::connect(address()).expect("the server answers");
    stream.write_all(word.as_bytes()).expect("asked");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

pub(crate) fn address() -> String {
    std::env::var("YLOCK_TEST_ZOOKEEPER").unwrap_or_else(|_| "127.0.0.1:2181".to_owned())
}

pub(crate) async fn raw() -> zookeeper_client::Client {
    zookeeper_client::Client::connect(&address()).await.expect("the server answers")
}
