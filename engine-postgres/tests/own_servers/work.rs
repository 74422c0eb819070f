//! Work under a lock while connections are ended at random: no increment is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ylock_testkit::short_or_long;

use super::own_server::OwnServer;
use super::{client, within};

const LEASE: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn no_increment_is_lost_while_connections_are_ended() {
    let server = OwnServer::start().await;
    server.execute("create table counter (name text primary key, value bigint not null)").await;
    server.execute("insert into counter values ('0', 0), ('1', 0), ('2', 0)").await;
    let (stop, done, inside) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicU64::new(0)),
        Arc::new([const { AtomicU64::new(0) }; 3]),
    );
    let mut workers = Vec::new();
    for number in 0..6_usize {
        let (ylock, raw) = (client(&server, LEASE).await, server.client().await);
        let (stop, done, inside) = (Arc::clone(&stop), Arc::clone(&done), Arc::clone(&inside));
        workers.push(tokio::spawn(async move {
            let mut round = number;
            while !stop.load(Ordering::Relaxed) {
                round += 1;
                let name = (round % 3).to_string();
                let Ok(guard) = ylock.locks("counters").write(name.as_str()).await else { continue };
                assert_eq!(inside[round % 3].fetch_add(1, Ordering::SeqCst), 0, "two holders");
                let read = "select value from counter where name = $1";
                let value: i64 = raw.query_one(read, &[&name]).await.unwrap().get(0);
                let write = "update counter set value = $2 where name = $1";
                raw.execute(write, &[&name, &(value + 1)]).await.unwrap();
                inside[round % 3].fetch_sub(1, Ordering::SeqCst);
                done.fetch_add(1, Ordering::Relaxed);
                let _ = guard.unlock().await;
            }
        }));
    }
    let time = Duration::from_secs(short_or_long(8, 300));
    let (began, mut ended, mut listening) = (Instant::now(), 0, false);
    while began.elapsed() < time {
        tokio::time::sleep(Duration::from_millis(300)).await;
        ended += server.end_connections(listening).await;
        listening = !listening;
    }
    stop.store(true, Ordering::Relaxed);
    for worker in workers {
        within("the worker ends", worker).await.unwrap();
    }
    let sum = "select sum(value)::bigint from counter";
    let counted: i64 = server.client().await.query_one(sum, &[]).await.unwrap().get(0);
    let done = done.load(Ordering::Relaxed);
    assert_eq!(u64::try_from(counted).unwrap(), done);
    assert!(ended > 20 && done > 100, "{ended} connections ended, {done} increments");
}
