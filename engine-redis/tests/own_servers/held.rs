//! Very many locks that one client holds.

use std::time::Duration;

use futures_util::future::join_all;
use ylock_core::Guard;
use ylock_testkit::own_servers::until;
use ylock_testkit::short_or_long;

use super::own_server::{Disk, OwnServer};

const TASKS: usize = 64;
/// The longest time in which all are taken.
const MOST: Duration = Duration::from_secs(180);

/// Ten thousand for half a minute, or a hundred thousand for five: each is renewed many times, and none is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn very_many_locks_are_held_and_none_is_lost() {
    let (many, seconds, lease) = short_or_long((10_000, 30, 10), (100_000, 300, 30));
    let server = OwnServer::start(Disk::Nothing).await;
    let ylock = super::client(&server, Duration::from_secs(lease)).await;
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let locks = ylock.locks("users");
            tokio::spawn(async move {
                let mut guards = Vec::new();
                for number in (task..many).step_by(TASKS) {
                    guards.push(locks.write(number.to_string()).await.unwrap());
                }
                guards
            })
        })
        .collect();
    let taken = ylock_testkit::within(MOST, "the locks are taken", join_all(tasks)).await;
    let held: Vec<Guard> = taken.into_iter().flat_map(|guards| guards.unwrap()).collect();
    for _ in 0..seconds {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let lost = held.iter().filter(|guard| !guard.is_valid()).count();
        assert_eq!(lost, 0, "of {many}");
    }
    drop(held);
    until("all are released", async || ylock.keys_in_use() == 0).await;
}
