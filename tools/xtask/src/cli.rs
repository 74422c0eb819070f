//! Defines the commands, as `cargo xtask help` shows them.

use std::{net::SocketAddr, time::Duration};

use clap::{
    Args, Parser, Subcommand,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
};

use crate::{
    ENGINES,
    cassandra::NodeAction,
    engine::{Bench, Engine},
    test::Part,
};

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
        #[arg(value_parser = engines(Engine::has_servers), default_value = "cassandra")]
        servers: Vec<&'static Engine>,
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
    /// Set the clock of one Cassandra node (used by tests of faults); it is right when the node starts
    Clock {
        /// 1 to 3: the cluster; 4: the node with login
        number: u8,
        /// Seconds by which it shall be ahead of the machine's clock; 0: it is right
        #[arg(allow_negative_numbers = true)]
        ahead: i64,
    },
    /// Run the tests, with real servers that are stopped afterwards
    Test(Test),
    /// Run the benchmarks
    Bench {
        #[arg(value_parser = benches(), default_value = "cassandra")]
        of: (&'static Engine, &'static Bench),
        /// Compare with the benchmark as it was at this commit: both in turns, five times, medians
        #[arg(long, value_name = "COMMIT")]
        against: Option<String>,
        /// Arguments for the benchmark itself, after `--`
        #[arg(last = true)]
        arguments: Vec<String>,
    },
    /// Try to break the engines, and the keeper, on simulated stores (`-- --help` for its options)
    Simulate {
        /// Arguments for the simulation itself
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Break the lines that decide, one at a time, and look whether a test notices
    Mutants {
        /// Files of the workspace; all that decide if none is given
        files: Vec<String>,
        /// Leaves out what the last run has noticed: goes on with one that was ended, or tries again what it did not notice
        #[arg(long)]
        again: bool,
    },
    /// Look whether clients of an older commit and of the work tree can share locks, on real servers, both ways round
    Upgrade {
        /// The older commit
        #[arg(long, value_name = "COMMIT", default_value = "HEAD~1")]
        against: String,
        /// All engines whose locks several processes share if none is given
        #[arg(value_parser = engines(|engine| engine.own_place.is_some()))]
        engines: Vec<&'static Engine>,
    },
    /// Show the metrics: run servers, a workload on them and a Prometheus that watches the workload, until Ctrl-C
    Observe(Observe),
    /// Check formatting, lints for every set of features, documentation, dependencies, rooms, files of
    /// engines, words, packages
    Check,
}

#[derive(Args, Debug)]
pub(crate) struct Test {
    /// Engines (`redis`), crates (`ylock-core`, `engine-redis`) or files of tests (`engine-redis/tests/own_servers`); everything if none is given
    #[arg(value_name = "PLACE")]
    pub(crate) places: Vec<String>,
    /// Run only the second of three parts that take about the same time: `2/3`
    #[arg(long, value_name = "N/M")]
    pub(crate) part: Option<Part>,
    /// Count a test that did not run as a failure (always so when CI=true)
    #[arg(long)]
    pub(crate) deny_skips: bool,
    /// Let the tests that kill, hold many locks or try random operations go on for minutes instead of seconds
    #[arg(long)]
    pub(crate) long: bool,
    /// Minutes after which the run is killed
    #[arg(long, value_name = "MINUTES", default_value = "40", default_value_if("long", "true", "180"), value_parser = minutes)]
    pub(crate) timeout: Duration,
}

#[derive(Args, Debug)]
pub(crate) struct Observe {
    /// Engines for the workload, as in `memory,redis`; all that can be started if none is given
    #[arg(long, value_parser = engines(|_| true), value_delimiter = ',')]
    pub(crate) engines: Vec<&'static Engine>,
    /// Address at which the workload serves its metrics; by default a free port
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) metrics: Option<SocketAddr>,
    /// Address at which Prometheus answers; by default a free port
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) prometheus: Option<SocketAddr>,
}

/// Returns a parser of the names of engines.
fn engines(is_meant: fn(&Engine) -> bool) -> impl TypedValueParser<Value = &'static Engine> {
    let meant = ENGINES.iter().copied().filter(|engine| is_meant(engine));
    one_of(meant.map(|engine| (PossibleValue::new(engine.name), engine)).collect())
}

/// Returns a parser of the names of benchmarks.
fn benches() -> impl TypedValueParser<Value = (&'static Engine, &'static Bench)> {
    let of = |&engine: &&'static Engine| engine.benches.iter().map(move |bench| (engine, bench));
    let mut all: Vec<_> = ENGINES.iter().flat_map(of).collect();
    all.sort_by_key(|(_, bench)| bench.name);
    let name = |bench: &Bench| PossibleValue::new(bench.name).help(bench.help);
    one_of(all.into_iter().map(|of| (name(of.1), of)).collect())
}

fn one_of<T: Copy + Send + Sync + 'static>(
    named: Vec<(PossibleValue, T)>,
) -> impl TypedValueParser<Value = T> {
    let names: Vec<_> = named.iter().map(|(name, _)| name.clone()).collect();
    PossibleValuesParser::new(names).map(move |given| {
        let meant = named.iter().find(|(name, _)| name.get_name() == given);
        meant.expect("the parser lets only these names through").1
    })
}

fn minutes(text: &str) -> Result<Duration, std::num::ParseIntError> {
    Ok(Duration::from_secs(60 * text.parse::<u32>().map(u64::from)?))
}
