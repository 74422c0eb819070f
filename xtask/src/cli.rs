//! The commands, as `cargo xtask help` shows them.

use std::{net::SocketAddr, time::Duration};

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Starts real servers without containers and runs every check of ylock.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask", disable_help_subcommand = false)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start servers and leave them running; print the variables that tests want
    Up {
        #[arg(value_enum, default_values_t = [Server::Cassandra])]
        servers: Vec<Server>,
        /// Also the Cassandra node that wants TLS and a password
        #[arg(long)]
        with_login: bool,
    },
    /// Stop all servers
    Down,
    /// Break or mend one Cassandra node (tests of faults call this)
    Node {
        /// 1 to 3: the cluster; 4: the node with login
        number: u8,
        action: NodeAction,
    },
    /// Run the tests, with real servers that are stopped afterwards
    Test(Test),
    /// Run the benchmarks
    Bench {
        #[arg(value_enum, default_value_t = Bench::Cassandra)]
        of: Bench,
        /// For the benchmark itself, behind `--`
        #[arg(last = true)]
        arguments: Vec<String>,
    },
    /// Break the Cassandra algorithms and the keeper on a simulated store (`-- --help` for its options)
    Simulate {
        /// For the simulation itself
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Show the metrics: servers, a workload on them and a Prometheus that watches it, until Ctrl-C
    Observe(Observe),
    /// Formatting, lints for every set of features, documentation, dependencies
    Check,
}

#[derive(Args, Debug)]
pub(crate) struct Test {
    /// All when none is given
    #[arg(value_enum)]
    pub(crate) engines: Vec<Engine>,
    /// A test that did not run is a failure (always so when CI=true)
    #[arg(long)]
    pub(crate) deny_skips: bool,
    /// Minutes after which everything is killed
    #[arg(long, value_name = "MINUTES", default_value = "40", value_parser = minutes)]
    pub(crate) timeout: Duration,
}

#[derive(Args, Debug)]
pub(crate) struct Observe {
    /// Those that can be had when none is given: `memory,redis`
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(crate) engines: Vec<Engine>,
    /// Where the workload tells its metrics; by default a port that is free
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) metrics: Option<SocketAddr>,
    /// Where Prometheus answers; by default a port that is free
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) prometheus: Option<SocketAddr>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Engine {
    Cassandra,
    Memory,
    Redis,
    Zookeeper,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Server {
    Cassandra,
    Redis,
    Zookeeper,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Bench {
    Cassandra,
    Core,
    Redis,
    /// The old lock of the thesis against its queue lock (`-- --help` for its options)
    Thesis,
    Zookeeper,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum NodeAction {
    /// SIGCONT: it goes on, with all that it missed
    Cont,
    /// It takes clients and hears nothing of its peers, nor they of it
    Cut,
    /// What it has in memory goes to its disk, where no kill can reach it
    Flush,
    /// What `cut` did is undone
    Join,
    /// SIGKILL
    Kill,
    /// On its data, and wait as `wait` does
    Start,
    /// SIGSTOP: it lives but does not answer
    Stop,
    /// Until it answers and its running peers see it up
    Wait,
}

fn minutes(text: &str) -> Result<Duration, std::num::ParseIntError> {
    Ok(Duration::from_secs(60 * text.parse::<u32>().map(u64::from)?))
}
