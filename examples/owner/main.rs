//! Three processes of which one owns a partition and sends work to a worker, each piece with the token of its ownership. An owner is paused between
//! the moment at which it looks whether it still owns the partition and the moment at which it sends. Meanwhile another process becomes the owner. The
//! worker refuses what the paused one sends when it goes on.
//!
//! ```text
//! cargo run -p ylock --features file --example owner                                   # three owners are paused, one after the other
//! cargo run -p ylock --features file --example owner -- 10 redis://127.0.0.1/?lease=2s # ten, with the feature `redis`
//! ```

#![allow(clippy::disallowed_methods, reason = "an example tells the time and spawns like any program")]

mod owner;
mod processes;
mod worker;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use processes::{Processes, Said};
use worker::Worker;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const OWNERS: usize = 3;
const GROUP: &str = "partitions";
const PARTITION: &str = "7";

/// One thread: a process that waits for a line on standard input stands still altogether, and renews no lease.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &*arguments.iter().map(String::as_str).collect::<Vec<_>>() {
        ["owner", url] => owner::run(url).await.map(|()| ExitCode::SUCCESS),
        ["help" | "--help", ..] => {
            println!("owner [PAUSES [URL]]");
            Ok(ExitCode::SUCCESS)
        }
        rest => {
            let pauses = rest.first().map_or(Ok(3), |pauses| pauses.parse())?;
            let folder = own_folder();
            let of_files = || format!("file://{}?lease=1s", folder.display());
            let judged = parent(pauses, &rest.get(1).map_or_else(of_files, |url| (*url).to_owned())).await;
            drop(std::fs::remove_dir_all(folder));
            judged
        }
    }
}

/// Starts the owners, pauses one after the other, and judges what the worker did.
async fn parent(pauses: usize, url: &str) -> Result<ExitCode> {
    let mut processes = Processes::start(OWNERS, url)?;
    let mut worker = Worker::new(ylock::connect(url).await?);
    for pause in 1..=pauses {
        // The owner stands still after it has looked, and before it sends.
        let paused = loop {
            match processes.next().await? {
                (owner, Said::AboutToSend) => break owner,
                (_, Said::Work(token)) => drop(worker.take(token).await?),
            }
        };
        processes.pause(paused).await?;
        let (mut late, mut done_by_another) = (None, false);
        while late.is_none() {
            match processes.next().await? {
                (owner, Said::AboutToSend) => processes.go_on(owner).await?,
                (owner, Said::Work(token)) if owner == paused => late = Some(worker.take(token).await?),
                (_, Said::Work(token)) => {
                    let was_done = worker.take(token).await?;
                    if was_done && !done_by_another {
                        done_by_another = true;
                        processes.resume(paused).await?;
                    }
                }
            }
        }
        let what = if late == Some(true) { "did it" } else { "refused it" };
        println!("pause {pause}: process {paused} sent late, and the worker {what}");
    }
    processes.end().await?;
    Ok(worker.judge(pauses))
}

/// Returns a folder of this run, in memory where the system has one.
fn own_folder() -> PathBuf {
    let memory = Path::new("/dev/shm");
    let all = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    all.join(format!("ylock-owner-{}", std::process::id()))
}
