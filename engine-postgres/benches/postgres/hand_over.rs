//! The gap between two holders of different clients, and what it costs; beside it the floor: an update with a `NOTIFY`, until it is heard. With as many
//! connections that listen as there are clients: PostgreSQL wakes each of them for each message in the database, whatever they listen to.

use std::time::{Duration, Instant};

use futures_util::StreamExt;
use tokio_postgres::{AsyncMessage, NoTls};
use ylock_testkit::measure::{Times, contend, ms, ratio};

use super::raw::Raw;
use super::{client, connect, url};

const LEASE: Duration = Duration::from_secs(30);
const HOLD: Duration = Duration::from_millis(1);
const WARM_UP: Duration = Duration::from_secs(2);
const TIME: Duration = Duration::from_secs(5);

pub(crate) async fn run() {
    for contenders in [2, 8, 32] {
        let floor = floor(contenders).await;
        let mut clients = Vec::new();
        for _ in 0..contenders {
            clients.push(client(LEASE).await);
        }
        let mut result = contend(clients, HOLD, WARM_UP, TIME).await;
        let (p50, p99) = (result.gaps.quantile(0.5), result.gaps.quantile(0.99));
        println!(
            "{contenders:4} clients: floor p50 {:>9}, gap p50 {:>9}  p99 {:>9}  {:5.2} of the floor  {:5.2} requests  {:6} hand-overs  most/fewest {:.2}",
            ms(floor),
            ms(p50),
            ms(p99),
            ratio(p50, floor),
            result.requests_each(),
            result.gaps.len(),
            result.unevenness,
        );
    }
}

async fn floor(listeners: usize) -> Duration {
    drop(Raw::connect().await);
    let mut others = Vec::new();
    for number in 1..listeners {
        let other = connect().await;
        other.batch_execute(&format!("listen other_{number}")).await.expect("listens");
        others.push(other);
    }
    let (listens, mut connection) = tokio_postgres::connect(&url(), NoTls).await.expect("the server answers");
    let mut messages =
        Box::pin(futures_util::stream::poll_fn(move |context| connection.poll_message(context)));
    let (heard, mut hears) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(Ok(message)) = messages.next().await {
            if matches!(message, AsyncMessage::Notification(_)) && heard.send(Instant::now()).is_err() {
                return;
            }
        }
    });
    listens.batch_execute("listen floor").await.expect("listens");
    let (notifies, mut times) = (connect().await, Times::default());
    // In one statement, as in a function.
    let statement = "with changed as (update bench.raw set value = 'floor' where key = '0' returning 1) select pg_notify('floor', 'x') from changed";
    let statement = notifies.prepare(statement).await.expect("prepared");
    for _ in 0..500 {
        tokio::time::sleep(HOLD).await;
        let start = Instant::now();
        let (sent, heard) = tokio::join!(notifies.execute(&statement, &[]), hears.recv());
        sent.expect("sent");
        times.push(heard.expect("heard") - start);
    }
    times.quantile(0.5)
}
