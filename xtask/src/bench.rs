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
        Bench::Thesis => {
            command = cargo::cargo();
            command.args(["run", "--release", "-p", "ylock-benchmark"]);
            let wants_servers = wants_real_points(arguments) && !servers::are_given();
            wants_servers.then(|| Servers::start(places)).transpose()?
        }
    };
    command.arg("--").args(arguments);
    command.envs(servers.iter().flat_map(Servers::environment));
    let status = child::run(&mut command, None)?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Whether the thesis's benchmark will ask real servers, by its own options.
fn wants_real_points(arguments: &[String]) -> bool {
    let has = |option: &str| arguments.iter().any(|argument| argument == option);
    let is_without = ["--render-only", "--help", "-h"].into_iter().any(has);
    !is_without && (has("--real") || !has("--simulated"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_started_only_for_real_points() {
        let wants =
            |line: &str| wants_real_points(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        assert!(wants("") && wants("--quick") && wants("--real --simulated"));
        assert!(!wants("--simulated --quick") && !wants("--real --render-only") && !wants("--help"));
    }
}
