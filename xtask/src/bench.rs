//! `cargo xtask bench`.

use std::process::ExitCode;

use anyhow::Result;

use crate::{
    cargo, child,
    cli::Bench,
    places::Places,
    servers::{self, Servers},
};

pub(crate) fn bench(places: &Places, of: Bench, arguments: &[String]) -> Result<ExitCode> {
    let mut command = cargo::cargo();
    command.arg("bench");
    let servers = match of {
        Bench::Cassandra => {
            command.args(["-p", "ylock-engine-cassandra", "--all-features", "--bench", "cassandra"]);
            (!servers::are_given()).then(|| Servers::start(places)).transpose()?
        }
        Bench::Core => {
            // By pattern: `--benches` would also run the unit tests, which do not know a benchmark's arguments.
            command.args(["-p", "ylock-core", "--all-features", "--bench", "*"]);
            None
        }
    };
    command.arg("--").args(arguments);
    command.envs(servers.iter().flat_map(Servers::environment));
    let status = child::run(&mut command, None)?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
