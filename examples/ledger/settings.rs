//! The command line.

use std::env;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Parser;
use clap::builder::ArgPredicate;

/// Many processes move money between accounts; in the end the sum must be right.
#[derive(Clone, Debug, Parser)]
#[command(name = "ledger")]
pub(crate) struct Settings {
    /// Worker processes
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) workers: u32,
    /// Accounts, 2 at least; the fewer, the more the workers get in each other's way. With --kill the default is 100, because the
    /// two accounts that a killed worker had locked stay locked for a while
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(2..))]
    #[arg(default_value_if("kill", ArgPredicate::IsPresent, "100"))]
    pub(crate) accounts: u32,
    /// Seconds for which the workers work
    #[arg(long, default_value_t = 10)]
    pub(crate) seconds: u64,
    /// Transfers to make at least: on a slow machine the workers work for longer than their seconds
    #[arg(long, default_value_t = 100)]
    pub(crate) transfers: u64,
    /// The lease: how long the locks of a killed worker stay
    #[arg(long, default_value = "5s")]
    pub(crate) lease: String,
    /// The store of the locks and of the accounts: a folder (file:///folder), or with the Cargo feature "cassandra" a cluster and a
    /// keyspace (cassandra://host1,host2,host3/keyspace; with schema=create a missing keyspace is created)
    #[arg(long, default_value_t = default_store())]
    pub(crate) store: String,
    /// The control arm: no locks
    #[arg(long)]
    pub(crate) no_lock: bool,
    /// Kill a worker about every second, in the middle of a transfer, and start a new one
    #[arg(long, conflicts_with = "no_lock")]
    pub(crate) kill: bool,
    /// Be a worker, with this number
    #[arg(long, hide = true)]
    pub(crate) worker: Option<i32>,
    /// The mark that tells the accounts of this run from those of other runs
    #[arg(long, hide = true, default_value_t = new_run())]
    pub(crate) run: String,
}

impl Settings {
    /// Returns the arguments with which this program runs as a worker.
    pub(crate) fn for_worker(&self, number: i32) -> Vec<String> {
        let mut arguments = vec![
            format!("--worker={number}"),
            format!("--run={}", self.run),
            format!("--accounts={}", self.accounts),
            format!("--lease={}", self.lease),
            format!("--store={}", self.store),
        ];
        if self.no_lock {
            arguments.push("--no-lock".to_owned());
        }
        arguments
    }

    /// Returns the URL for the locks. It contains the lease, because how long the engine waits for an answer depends on the lease.
    pub(crate) fn ylock_url(&self) -> String {
        let mark = if self.store.contains('?') { '&' } else { '?' };
        format!("{}{mark}lease={}", self.store, self.lease)
    }

    /// Returns the names of the accounts.
    pub(crate) fn names(&self) -> impl Iterator<Item = String> {
        (0..self.accounts).map(|number| format!("account-{number:03}"))
    }
}

/// Returns a folder of this user, in memory where the system has one: nothing need be installed or started.
fn default_store() -> String {
    let all = env::var("XDG_RUNTIME_DIR").ok().filter(|folder| Path::new(folder).is_dir());
    let all = all.unwrap_or_else(|| {
        let memory = Path::new("/dev/shm");
        if memory.is_dir() { memory.to_owned() } else { env::temp_dir() }.display().to_string()
    });
    format!("file://{all}/ylock-ledger-{}", user())
}

/// Returns what tells this user from others.
fn user() -> String {
    env::var("USER")
        .ok()
        .filter(|user| user.chars().all(char::is_alphanumeric))
        .unwrap_or_else(|| "me".to_owned())
}

fn new_run() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{}-{}", now.as_millis(), std::process::id())
}
