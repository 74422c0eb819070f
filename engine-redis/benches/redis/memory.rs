//! The memory of the client: what a pair allocates, and what a key costs that is held or waited for.

use std::thread;
use std::time::Duration;

use allocation_counter::{AllocationInfo, measure};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use ylock_core::{Guard, Locks};
use ylock_testkit::measure::{Measured, group};

use super::client;
use super::raw::Raw;

const LEASE: Duration = Duration::from_secs(30);
const PAIRS: u32 = 1_000;
const KEYS: u32 = 1_000;

/// On a thread of its own: allocations are counted per thread, so all tasks of the client must be on one.
pub(crate) fn run() {
    thread::spawn(|| {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        pairs(&runtime);
        keys(&runtime);
    })
    .join()
    .expect("measured");
}

fn pairs(runtime: &Runtime) {
    let mut raw = runtime.block_on(Raw::connect());
    let mut of_raw = async |count: u32| {
        for _ in 0..count {
            raw.pair("ylock:{1}:6:memory:0").await;
        }
    };
    runtime.block_on(of_raw(PAIRS));
    print("raw", measure(|| runtime.block_on(of_raw(PAIRS))));
    let client = runtime.block_on(client(LEASE));
    let locks = client.ylock.locks(group());
    let of_own = async |count: u32| {
        for _ in 0..count {
            let guard = locks.write("0").await.expect("granted");
            assert!(guard.unlock().await.expect("released").is_released());
        }
    };
    runtime.block_on(of_own(PAIRS));
    print("ylock", measure(|| runtime.block_on(of_own(PAIRS))));
    runtime.block_on(client.ylock.close());
}

fn print(what: &str, used: AllocationInfo) {
    let each = |count: u64| count as f64 / f64::from(PAIRS);
    let (count, bytes) = (each(used.count_total), each(used.bytes_total));
    println!("{what:6} each pair: {count:.1} allocations, {bytes:.0} bytes");
}

/// Measures what is left allocated, once before with the same keys: tables and buffers that have grown do not count.
fn keys(runtime: &Runtime) {
    let clients = [runtime.block_on(client(LEASE)), runtime.block_on(client(LEASE))];
    let group = group();
    // What follows from these goes on for a moment after they are given back.
    let _ = use_keys(runtime, &clients, &group);
    runtime.block_on(a_second());
    let [held, waiting, left] =
        use_keys(runtime, &clients, &group).map(|bytes| bytes as f64 / f64::from(KEYS));
    println!("each key: {held:.0} bytes held, {waiting:.0} waiting, {left:.0} afterwards");
}

/// Lets one client hold all keys and the other one wait for them. Returns the bytes in use for held keys, for waiting, and afterwards.
fn use_keys(runtime: &Runtime, clients: &[Measured; 2], group: &str) -> [i64; 3] {
    let [held, waited] = clients.each_ref().map(|client| client.ylock.locks(group));
    let (mut guards, mut tasks) = (Vec::with_capacity(KEYS as usize), Vec::new());
    let of_held = measure(|| runtime.block_on(hold_all(&held, &mut guards))).bytes_current;
    let of_waiting = measure(|| {
        tasks = (0..KEYS).map(|key| runtime.spawn(wait(waited.clone(), key))).collect();
        runtime.block_on(a_second());
    });
    let of_idle = measure(|| {
        // In the runtime: the client would give the locks back on a thread of its own otherwise, which is not counted.
        runtime.block_on(async {
            tasks.drain(..).for_each(|task: JoinHandle<()>| task.abort());
            guards.clear();
            until_idle(clients).await;
            a_second().await;
        });
        drop(std::mem::take(&mut tasks));
    });
    let of_waiting = of_waiting.bytes_current;
    [of_held, of_waiting, of_held + of_waiting + of_idle.bytes_current]
}

async fn hold_all(locks: &Locks, guards: &mut Vec<Guard>) {
    for key in 0..KEYS {
        guards.push(locks.write(key.to_string()).await.expect("granted"));
    }
}

async fn wait(locks: Locks, key: u32) {
    drop(locks.write(key.to_string()).await);
}

async fn until_idle(clients: &[Measured]) {
    while clients.iter().any(|client| client.ylock.keys_in_use() > 0) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn a_second() {
    tokio::time::sleep(Duration::from_secs(1)).await;
}
