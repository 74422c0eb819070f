//! A server whose clock can be set, and what becomes of locks then.

#[path = "../../model/chance.rs"]
mod chance;
mod counter;
mod random;
mod steps;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use ylock_core::engine::{AcquisitionId, Engine, Patience, Request};
use ylock_core::{Fairness, Key, Mode, Owner};
use ylock_engine_redis::RedisEngine;

use super::own_server::OwnServer;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/own_servers/clock/clock.c");
/// What a look at the clock may seem to take longer than it does, because the machine's own clock is kept right meanwhile.
const TOLERANCE: i64 = 10_000;
const HOUR: Duration = Duration::from_secs(60 * 60);

/// See the [module](self).
struct SetServer {
    server: OwnServer,
    /// How far its clock is ahead of the machine's, in microseconds.
    ahead: i64,
    file: File,
    folder: PathBuf,
}

impl SetServer {
    async fn start() -> Self {
        let folder = std::env::temp_dir().join(format!("ylock-clock-{}", ylock_core::Owner::new()));
        std::fs::create_dir_all(&folder).unwrap();
        let (library, name) = (folder.join("clock.so"), folder.join("ahead"));
        compile(&library);
        let file = File::create_new(&name).unwrap();
        write(&file, 0);
        let variables = [("LD_PRELOAD", library.as_path()), ("YLOCK_TEST_CLOCK", name.as_path())];
        let server = OwnServer::start_with_variables(&variables).await;
        Self { server, ahead: 0, file, folder }
    }

    async fn forwards(&mut self, by: Duration) {
        self.step(micros(by)).await;
    }

    async fn backwards(&mut self, by: Duration) {
        self.step(-micros(by)).await;
    }

    /// Sees to it that the step was made: otherwise tests would pass that have tried nothing.
    async fn step(&mut self, by: i64) {
        let (asked, before) = (Instant::now(), self.time().await);
        self.ahead += by;
        write(&self.file, self.ahead);
        let (after, took) = (self.time().await, micros(asked.elapsed()));
        let rest = after - before - by;
        assert!((-TOLERANCE..=took + TOLERANCE).contains(&rest), "a step by {by} took {rest} of {took}");
    }

    /// In microseconds since 1970.
    async fn time(&self) -> i64 {
        let (seconds, micros): (i64, i64) = self.server.ask(&["TIME"]).await.unwrap();
        seconds * 1_000_000 + micros
    }
}

fn compile(library: &Path) {
    // Rust links with it too, so it is there.
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"]).arg(library).arg(SOURCE);
    let output = compiler.output().expect("a C compiler, `cc`");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn write(file: &File, ahead: i64) {
    file.write_all_at(&ahead.to_ne_bytes(), 0).unwrap();
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap()
}

fn request(engine: &RedisEngine, mode: Mode, lease: Duration) -> Request {
    Request {
        key: Key::new("users", "alice").unwrap(),
        id: AcquisitionId::new(&*engine.environment()),
        mode,
        owner: Owner::new(),
        lease,
        patience: Patience::Queue,
        fairness: Fairness::Fair,
        ticket: None,
    }
}

impl Drop for SetServer {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
