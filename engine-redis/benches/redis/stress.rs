//! Eight processes that take one lock from each other, one of them killed every moment: nobody inside beside somebody, no increment
//! lost, nothing left.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;
use ylock_core::Owner;

use super::{client, group};

/// What a child process is called by.
pub(crate) const ROLE: &str = "stress-worker";

const WORKERS: usize = 8;
const NAMES: u64 = 3;
const LEASE: Duration = Duration::from_secs(2);
const BETWEEN_KILLS: Duration = Duration::from_millis(700);

/// Minutes, from `YLOCK_STRESS_MINUTES`.
fn time() -> Duration {
    let minutes = std::env::var("YLOCK_STRESS_MINUTES").ok().and_then(|minutes| minutes.parse().ok());
    Duration::from_secs_f64(60.0 * minutes.unwrap_or(5.0))
}

pub(crate) async fn run() {
    let group = group();
    let mut workers: Vec<Worker> = (0..WORKERS).map(|_| Worker::start(&group)).collect();
    let (mut killed, mut next) = (Vec::new(), 0);
    let start = Instant::now();
    while start.elapsed() < time() {
        tokio::time::sleep(BETWEEN_KILLS).await;
        next = (next + 3) % WORKERS;
        let victim = std::mem::replace(&mut workers[next], Worker::start(&group));
        killed.push(victim.kill());
    }
    let stop = format!("{group}:stop");
    let mut connection = connect().await;
    redis::cmd("SET").arg(&stop).arg(1).exec_async(&mut connection).await.expect("set");
    let ended = workers.into_iter().map(Worker::wait).filter(|ended| *ended).count();
    report(&mut connection, &group, &killed, ended).await;
}

async fn report(connection: &mut MultiplexedConnection, group: &str, killed: &[String], ended: usize) {
    let (mut value, mut acknowledged) = (0, 0);
    for name in 0..NAMES {
        value += number(connection, &format!("{group}:value:{name}")).await;
        acknowledged += number(connection, &format!("{group}:acknowledged:{name}")).await;
    }
    let met: Vec<String> = redis::cmd("LRANGE")
        .arg(format!("{group}:met"))
        .arg(0)
        .arg(-1)
        .query_async(connection)
        .await
        .expect("a list");
    // Who was killed inside could not take its mark away.
    let overlaps =
        met.iter().filter(|mark| !killed.iter().any(|dead| mark.starts_with(dead.as_str()))).count();
    let kills = killed.len() as i64;
    println!("{WORKERS} processes for {:?}: {} killed, {ended} ended in peace", time(), kills);
    println!("{value} increments, {acknowledged} acknowledged, {overlaps} overlaps");
    assert!(overlaps == 0, "somebody was inside beside somebody");
    assert!(acknowledged <= value && value <= acknowledged + kills, "an increment was lost");
    assert_eq!(ended, WORKERS, "a worker failed");
    tokio::time::sleep(LEASE * 2).await;
    println!("{} fields are left of the locks beside the last tokens", left(connection, group).await);
}

/// Holders, waiters and whatever else there is in the locks of the group.
async fn left(connection: &mut MultiplexedConnection, group: &str) -> usize {
    let pattern = format!("ylock:*:{group}:*");
    let keys: Vec<String> = redis::cmd("KEYS").arg(pattern).query_async(connection).await.expect("keys");
    let mut left = 0;
    for key in keys {
        // Whoever comes next ends what has expired.
        let fields: Vec<String> = redis::cmd("HKEYS").arg(key).query_async(connection).await.expect("fields");
        left += fields.iter().filter(|field| !["t", "e"].contains(&field.as_str())).count();
    }
    left
}

async fn number(connection: &mut MultiplexedConnection, key: &str) -> i64 {
    let number: Option<i64> = redis::cmd("GET").arg(key).query_async(connection).await.expect("a number");
    number.unwrap_or(0)
}

async fn connect() -> MultiplexedConnection {
    let client = redis::Client::open(super::address()).expect("an address");
    client.get_multiplexed_async_connection().await.expect("the server answers")
}

struct Worker {
    name: String,
    child: Child,
}

impl Worker {
    fn start(group: &str) -> Self {
        let name = Owner::new().to_string();
        let executable = std::env::current_exe().expect("this program");
        let mut command = Command::new(executable);
        let child = command.args([ROLE, group, &name]).stdout(Stdio::null()).spawn().expect("started");
        Self { name, child }
    }

    fn kill(mut self) -> String {
        self.child.kill().expect("killed");
        self.child.wait().expect("ended");
        self.name
    }

    fn wait(mut self) -> bool {
        self.child.wait().is_ok_and(|status| status.success())
    }
}

/// A child process: takes locks and increments until it is told to stop.
pub(crate) async fn work(group: &str, name: &str) {
    let client = client(LEASE).await;
    let locks = client.ylock.locks(group.to_owned());
    let mut connection = connect().await;
    let mut round = 0u64;
    while number(&mut connection, &format!("{group}:stop")).await == 0 {
        round += 1;
        let lock = (round * 7 + u64::from(name.as_bytes()[0])) % NAMES;
        let Ok(guard) = locks.write(lock.to_string()).await else { continue };
        increment(&mut connection, group, name, lock, || guard.is_valid()).await;
        drop(guard.unlock().await);
    }
    client.ylock.close().await;
}

async fn increment(
    connection: &mut MultiplexedConnection,
    group: &str,
    name: &str,
    lock: u64,
    is_valid: impl Fn() -> bool,
) {
    let (inside, value) = (format!("{group}:inside:{lock}"), format!("{group}:value:{lock}"));
    let mark = format!("{name}:{}", Owner::new());
    let met: Option<String> =
        redis::cmd("SET").arg(&inside).arg(&mark).arg("GET").query_async(connection).await.expect("marked");
    if let Some(met) = met {
        redis::cmd("RPUSH").arg(format!("{group}:met")).arg(met).exec_async(connection).await.expect("noted");
    }
    let read = number(connection, &value).await;
    tokio::time::sleep(Duration::from_millis(1)).await;
    if is_valid() {
        redis::cmd("SET").arg(&value).arg(read + 1).exec_async(connection).await.expect("written");
        let acknowledged = format!("{group}:acknowledged:{lock}");
        redis::cmd("INCR").arg(acknowledged).exec_async(connection).await.expect("acknowledged");
    }
    redis::cmd("DEL").arg(&inside).exec_async(connection).await.expect("unmarked");
}
