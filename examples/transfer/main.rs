//! An example in which processes move money between accounts that they lock together.
//!
//! ```text
//! cargo run -p ylock-transfer --example transfer                # with sets of locks: each reading of all accounts has the same sum
//! cargo run -p ylock-transfer --example transfer -- --no-lock   # without: money comes and goes
//! cargo run -p ylock-transfer --example transfer --features redis -- --locks redis://127.0.0.1
//! ```
//!
//! An account is a file with a number in it. A worker does three things, again and again:
//!
//! - it moves a coin between two accounts that it knows beforehand, under both of their locks ([`Worker::transfer`]): `many`;
//! - it moves a coin to the account that the first one names, which it learns only when it has read that ([`Worker::follow`]): `two_phase_locking`;
//! - it reads all accounts at one moment, under all of their locks as a reader ([`Worker::audit`]), and adds them up.
//!
//! Here no worker is killed and no token is checked: what it takes to bear that is in the example `ledger`.

#![allow(clippy::disallowed_methods, reason = "an example tells the time and spawns like any program")]

mod books;

use std::path::PathBuf;
use std::process::{ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Parser;
use tokio::process::Command;
use ylock::Ylock;

use crate::books::Books;

/// Processes move money between accounts that they lock together; the sum must be the same at every moment.
#[derive(Clone, Debug, Parser)]
#[command(name = "transfer")]
struct Settings {
    /// Worker processes
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..))]
    workers: u32,
    /// Accounts
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(2..1000))]
    accounts: u32,
    /// Seconds for which the workers work
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// The store of the locks, as a URL; a folder beside the accounts if none is named
    #[arg(long)]
    locks: Option<String>,
    /// The control arm: no locks
    #[arg(long)]
    no_lock: bool,
    /// Be a worker on the accounts in this folder
    #[arg(long, hide = true)]
    folder: Option<PathBuf>,
}

/// What one worker has done.
#[derive(Clone, Copy, Debug, Default)]
struct Done {
    moves: u64,
    audits: u64,
    /// Readings of all accounts with another sum than that of the beginning.
    wrong: u64,
    /// Runs of the closure of `two_phase_locking` beyond the first.
    again: u64,
}

#[tokio::main]
async fn main() -> ExitCode {
    let settings = Settings::parse();
    let result = match &settings.folder {
        Some(folder) => Box::pin(work(&settings, folder.clone())).await.map(|()| ExitCode::SUCCESS),
        None => run(&settings).await,
    };
    result.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::from(2)
    })
}

/// Runs the parent: opens the accounts, lets the workers work, and adds up what they have seen.
async fn run(settings: &Settings) -> Result<ExitCode> {
    let folder = std::env::temp_dir().join(format!("ylock-transfer-{}", std::process::id()));
    let books = Books::open(&folder, settings.accounts)?;
    let workers = (0..settings.workers).map(|_| worker(settings, &folder)).collect::<Result<Vec<_>>>()?;
    let mut all = Done::default();
    for worker in workers {
        let output = worker.wait_with_output().await?;
        ensure!(output.status.success(), "a worker failed: {}", String::from_utf8_lossy(&output.stderr));
        all.add(&String::from_utf8(output.stdout)?)?;
    }
    let (sum, right) = (books.sum(), books.right_sum());
    println!("  moves                {}, of which {} ran again", all.moves, all.again);
    println!("  readings of all      {}, of which {} had another sum", all.audits, all.wrong);
    println!("  the sum at the end   {sum} instead of {right}");
    std::fs::remove_dir_all(&folder)?;
    Ok(judge(settings.no_lock, all.wrong == 0 && sum == right))
}

fn judge(no_lock: bool, is_right: bool) -> ExitCode {
    match (no_lock, is_right) {
        (false, true) => println!("OK: the sets of locks kept the books right"),
        (true, false) => println!("OK: this is what happens without locks"),
        (false, false) => println!("WRONG: money was lost under locks"),
        (true, true) => println!("WRONG: the books are right without locks; the workers did not meet"),
    }
    if no_lock == is_right { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Starts a worker.
fn worker(settings: &Settings, folder: &std::path::Path) -> Result<tokio::process::Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(format!("--folder={}", folder.display()));
    command.arg(format!("--accounts={}", settings.accounts)).arg(format!("--seconds={}", settings.seconds));
    command.args(settings.locks.iter().map(|url| format!("--locks={url}")));
    command.args(settings.no_lock.then_some("--no-lock"));
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command.spawn().context("a worker does not start")
}

/// Works until the time is over, and prints what was done.
async fn work(settings: &Settings, folder: PathBuf) -> Result<()> {
    let books = Books::at(&folder, settings.accounts);
    let url = settings.locks.clone().unwrap_or_else(|| format!("file://{}/locks", folder.display()));
    let ylock = ylock::connect(&url).await?;
    let mut worker = Worker { ylock, books, no_lock: settings.no_lock, done: Done::default() };
    let end = Instant::now() + Duration::from_secs(settings.seconds);
    // At least one reading, however slow the machine is.
    while Instant::now() < end || worker.done.audits == 0 {
        match rand::random_range(0..10) {
            0 => worker.audit().await?,
            1..4 => worker.follow().await?,
            _ => worker.transfer().await?,
        }
    }
    worker.ylock.close().await;
    let Done { moves, audits, wrong, again } = worker.done;
    println!("{moves} {audits} {wrong} {again}");
    Ok(())
}

impl Done {
    /// Adds what a worker has printed.
    fn add(&mut self, printed: &str) -> Result<()> {
        let numbers = printed.split_whitespace().map(str::parse).collect::<Result<Vec<u64>, _>>()?;
        let [moves, audits, wrong, again] = numbers[..] else {
            anyhow::bail!("a worker printed {printed:?}")
        };
        self.moves += moves;
        self.audits += audits;
        self.wrong += wrong;
        self.again += again;
        Ok(())
    }
}

struct Worker {
    ylock: Ylock,
    books: Books,
    no_lock: bool,
    done: Done,
}

impl Worker {
    /// Moves a coin between two accounts that are known beforehand. In which order they are named does not matter.
    async fn transfer(&mut self) -> Result<()> {
        let (from, to) = self.books.any_two();
        let books = &self.books;
        if self.no_lock {
            books.move_one(from, to).await;
        } else {
            let both = self.ylock.multi_lock().write("accounts", from).write("accounts", to);
            both.acquire().run(|_| books.move_one(from, to)).await?;
        }
        self.done.moves += 1;
        Ok(())
    }

    /// Moves a coin from an account to the one that it names. Nothing is changed before both locks are there, because until then the closure may
    /// begin anew.
    async fn follow(&mut self) -> Result<()> {
        let (from, _) = self.books.any_two();
        let (books, mut runs) = (&self.books, 0);
        if self.no_lock {
            books.move_one(from, books.named_by(from)).await;
        } else {
            let moved = self.ylock.two_phase_locking(|taking| {
                runs += 1;
                async move {
                    taking.write("accounts", from).await?;
                    let to = books.named_by(from);
                    taking.write("accounts", to).await?;
                    books.move_one(from, to).await;
                    Ok::<_, ylock::Error>(())
                }
            });
            moved.await?;
        }
        self.done.moves += 1;
        self.done.again += u64::from(runs > 1);
        Ok(())
    }

    /// Reads all accounts at one moment, beside other readers.
    async fn audit(&mut self) -> Result<()> {
        let (all, books) = (0..self.books.accounts(), &self.books);
        let sum = if self.no_lock {
            books.slow_sum().await
        } else {
            let all = all.fold(self.ylock.multi_lock(), |many, account| many.read("accounts", account));
            all.acquire().run(|_| books.slow_sum()).await?
        };
        self.done.audits += 1;
        self.done.wrong += u64::from(sum != books.right_sum());
        Ok(())
    }
}
