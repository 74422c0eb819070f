//! Three replicas of a service, each a process of its own, which are killed in turn. One of them leads; and each second's job is run by one of them,
//! at most once.
//!
//! ```text
//! cargo run -p ylock --features file --example scheduler                                     # ten seconds, in a folder of its own
//! cargo run -p ylock --features file --example scheduler -- 60 file:///run/user/1000/jobs     # a minute, there
//! ```
//!
//! What the replicas do they append to a journal, a line each, in one write: `lead` with the term when one begins to lead, `run` with the period when
//! one begins the job. In the end the parent reads the journal: each term must be larger than the one before it, and no period may be there twice.

#![allow(clippy::disallowed_methods, reason = "an example tells the time and spawns like any program")]

use std::collections::HashSet;
use std::error::Error;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};
use ylock::{ErrorKind, JobOutcome, Ylock};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const REPLICAS: usize = 3;
const PERIOD: Duration = Duration::from_secs(1);

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &*arguments.iter().map(String::as_str).collect::<Vec<_>>() {
        ["replica", url, journal] => replica(url, Path::new(journal)).await.map(|()| ExitCode::SUCCESS),
        ["help" | "--help", ..] => {
            println!("scheduler [SECONDS [URL]]");
            Ok(ExitCode::SUCCESS)
        }
        rest => {
            let seconds = rest.first().map_or(Ok(10), |seconds| seconds.parse())?;
            parent(Duration::from_secs(seconds), rest.get(1).copied()).await
        }
    }
}

/// Is one of the replicas, until it is killed.
async fn replica(url: &str, journal: &Path) -> Result<()> {
    let ylock = ylock::connect(url).await?;
    tokio::try_join!(lead(&ylock, journal), run_jobs(&ylock, journal))?;
    Ok(())
}

/// Is a candidate for as long as it lives.
async fn lead(ylock: &Ylock, journal: &Path) -> Result<()> {
    let election = ylock.locks("elections").election("scheduler");
    loop {
        let led = election.campaign().run(|lease| async move {
            note(journal, &format!("lead {}", lease.token().map_or(0, ylock::Token::get)))?;
            std::future::pending::<Result<()>>().await
        });
        match led.await {
            Ok(ended) => ended?,
            Err(error) if error.kind() == ErrorKind::Lost => {} // another one leads; a candidate again
            Err(error) => return Err(error.into()),
        }
    }
}

/// Calls several times per period. Which replica runs the job is decided anew in each.
async fn run_jobs(ylock: &Ylock, journal: &Path) -> Result<()> {
    let jobs = ylock.locks("jobs");
    loop {
        let job = jobs.once_per("tick", PERIOD, |scheduled| {
            let period = scheduled.run().period_micros();
            async move { note(journal, &format!("run {period}")) }
        });
        if let JobOutcome::Ran(noted) = job.await? {
            noted?;
        }
        sleep(PERIOD / 10).await;
    }
}

fn note(journal: &Path, line: &str) -> Result<()> {
    // One write: several processes append to the same file.
    let mut file = OpenOptions::new().append(true).create(true).open(journal)?;
    Ok(file.write_all(format!("{line}\n").as_bytes())?)
}

/// Starts the replicas, kills one about every second and starts another one, and judges the journal.
async fn parent(time: Duration, url: Option<&str>) -> Result<ExitCode> {
    let folder = own_folder();
    fs::create_dir_all(&folder)?;
    let url = url.map_or_else(|| format!("file://{}/locks?lease=2s", folder.display()), str::to_owned);
    let journal = folder.join("journal");
    let start = || -> Result<Child> {
        let program = std::env::current_exe()?;
        Ok(Command::new(program).arg("replica").arg(&url).arg(&journal).kill_on_drop(true).spawn()?)
    };
    let mut replicas = (0..REPLICAS).map(|_| start()).collect::<Result<Vec<_>>>()?;
    let (begun, mut killed) = (Instant::now(), 0);
    while begun.elapsed() < time {
        sleep(Duration::from_millis(900)).await;
        let next = killed % REPLICAS;
        replicas[next].kill().await?; // as by `kill -9`
        replicas[next] = start()?;
        killed += 1;
    }
    for replica in &mut replicas {
        replica.kill().await?;
    }
    let judged = judge(&fs::read_to_string(&journal)?, killed);
    fs::remove_dir_all(folder)?;
    Ok(judged)
}

fn judge(journal: &str, killed: usize) -> ExitCode {
    let numbers =
        |word| journal.lines().filter_map(move |line| line.strip_prefix(word)?.trim().parse::<i64>().ok());
    let (terms, runs): (Vec<_>, Vec<_>) = (numbers("lead ").collect(), numbers("run ").collect());
    let periods: HashSet<_> = runs.iter().collect();
    println!("{killed} replicas killed, {} leaders, {} periods run", terms.len(), periods.len());
    let (terms_grow, once) = (terms.windows(2).all(|pair| pair[0] < pair[1]), periods.len() == runs.len());
    let good = terms_grow && once && !terms.is_empty() && !runs.is_empty();
    println!(
        "{}: terms grow: {terms_grow}; no period was run twice: {once}",
        if good { "OK" } else { "FAILED" }
    );
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Returns a folder of this run, in memory where the system has one.
fn own_folder() -> PathBuf {
    let memory = Path::new("/dev/shm");
    let all = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    all.join(format!("ylock-scheduler-{}", std::process::id()))
}
