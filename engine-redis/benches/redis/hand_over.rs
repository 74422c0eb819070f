//! The gap between two holders of different clients, and what it costs.

use std::time::{Duration, Instant};

use redis::AsyncConnectionConfig;
use redis::aio::MultiplexedConnection;

use super::client;
use ylock_testkit::measure::{Times, contend, ms, ratio};

const LEASE: Duration = Duration::from_secs(30);
const HOLD: Duration = Duration::from_millis(1);
const WARM_UP: Duration = Duration::from_secs(2);
const TIME: Duration = Duration::from_secs(6);

pub(crate) async fn run() {
    let ping = ping().await;
    println!("one round trip p50 {}", ms(ping));
    for contenders in [2, 8, 32, 1_000] {
        let mut clients = Vec::new();
        for _ in 0..contenders {
            clients.push(client(LEASE).await);
        }
        let (mut result, server_cpu) = tokio::join!(contend(clients, HOLD, WARM_UP, TIME), server_cpu());
        let server_cpu = server_cpu.as_secs_f64() * 1e6 / result.gaps.len() as f64;
        let (p50, p99) = (result.gaps.quantile(0.5), result.gaps.quantile(0.99));
        println!(
            "{contenders:4} clients: gap p50 {:>9}  p99 {:>9}  {:5.2} and {:5.2} round trips  {:5.2} requests  \
             CPU of the server {server_cpu:5.1} µs  {:6} hand-overs  most/fewest {:.2}",
            ms(p50),
            ms(p99),
            ratio(p50, ping),
            ratio(p99, ping),
            result.requests_each(),
            result.gaps.len(),
            result.unevenness,
        );
    }
}

/// Returns the CPU time of the server while the hand-overs count.
async fn server_cpu() -> Duration {
    let client = redis::Client::open(super::address()).expect("an address");
    // The threads of a thousand clients that begin keep this one waiting.
    let patient = AsyncConnectionConfig::new().set_response_timeout(None);
    let connection = client.get_multiplexed_async_connection_with_config(&patient);
    let mut connection = connection.await.expect("the server answers");
    tokio::time::sleep(WARM_UP).await;
    let before = server_cpu_so_far(&mut connection).await;
    tokio::time::sleep(TIME).await;
    server_cpu_so_far(&mut connection).await - before
}

async fn server_cpu_so_far(connection: &mut MultiplexedConnection) -> Duration {
    let info: String = redis::cmd("INFO").arg("cpu").query_async(connection).await.expect("an answer");
    let value = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)?.parse::<f64>().ok());
    let sum = ["used_cpu_user:", "used_cpu_sys:"].iter().filter_map(|name| value(name)).sum();
    Duration::from_secs_f64(sum)
}

/// A round trip that comes a millisecond after the last one, as those of waiters do.
async fn ping() -> Duration {
    let client = redis::Client::open(super::address()).expect("an address");
    let mut connection = client.get_multiplexed_async_connection().await.expect("the server answers");
    let mut times = Times::default();
    for _ in 0..2_000 {
        tokio::time::sleep(HOLD).await;
        let start = Instant::now();
        redis::cmd("PING").exec_async(&mut connection).await.expect("an answer");
        times.push(start.elapsed());
    }
    times.quantile(0.5)
}
