//! Defines the commands, as `cargo xtask help` shows them.

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
    /// Start servers and leave them running; print the environment variables that tests need
    Up {
        #[arg(value_enum, default_values_t = [Server::Cassandra])]
        servers: Vec<Server>,
        /// Also start the Cassandra node that requires TLS and a password
        #[arg(long)]
        with_login: bool,
    },
    /// Stop all servers
    Down,
    /// Break or mend one Cassandra node (used by tests of faults)
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
        /// Arguments for the benchmark itself, after `--`
        #[arg(last = true)]
        arguments: Vec<String>,
    },
    /// Try to break the Cassandra algorithms and the keeper on a simulated store (`-- --help` for its options)
    Simulate {
        /// Arguments for the simulation itself
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Show the metrics: run servers, a workload on them and a Prometheus that watches the workload, until Ctrl-C
    Observe(Observe),
    /// Check formatting, lints for every set of features, documentation, dependencies, rooms, words, packages
    Check,
}

#[derive(Args, Debug)]
pub(crate) struct Test {
    /// Engines to test; all if none is given
    #[arg(value_enum)]
    pub(crate) engines: Vec<Engine>,
    /// Count a test that did not run as a failure (always so when CI=true)
    #[arg(long)]
    pub(crate) deny_skips: bool,
    /// Minutes after which the run is killed
    #[arg(long, value_name = "MINUTES", default_value = "40", value_parser = minutes)]
    pub(crate) timeout: Duration,
}

#[derive(Args, Debug)]
pub(crate) struct Observe {
    /// Engines for the workload, as in `memory,redis`; all that can be started if none is given
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(crate) engines: Vec<Engine>,
    /// Address at which the workload serves its metrics; by default a free port
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) metrics: Option<SocketAddr>,
    /// Address at which Prometheus answers; by default a free port
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
    /// Let a stopped node go on (SIGCONT), with all that it missed
    Cont,
    /// Cut the node off from its peers, but not from clients
    Cut,
    /// Write what the node has in memory to its disk, so that it survives a kill
    Flush,
    /// Undo what `cut` did
    Join,
    /// Kill the node (SIGKILL)
    Kill,
    /// Start the node again on its data, and wait as `wait` does
    Start,
    /// Stop the node (SIGSTOP): it lives but does not answer
    Stop,
    /// Wait until the node answers and its running peers see it up
    Wait,
}

fn minutes(text: &str) -> Result<Duration, std::num::ParseIntError> {
    Ok(Duration::from_secs(60 * text.parse::<u32>().map(u64::from)?))
}
