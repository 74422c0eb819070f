//! Runs benchmarks: `cargo xtask bench`.

use std::process::ExitCode;

use anyhow::Result;

use crate::{
    cargo, child,
    cli::{Bench, Server},
    places::Places,
    servers::Servers,
};

pub(crate) fn bench(places: &Places, of: Bench, arguments: &[String]) -> Result<ExitCode> {
    let mut command = cargo::cargo();
    command.arg("bench");
    let engine =
        |name: &str| ["-p".to_owned(), format!("ylock-engine-{name}"), "--bench".to_owned(), name.to_owned()];
    let servers = match of {
        Bench::Cassandra => {
            command.args(engine("cassandra"));
            Some(Servers::start(places, &[Server::Cassandra])?)
        }
        Bench::Redis => {
            command.args(engine("redis"));
            Some(Servers::start(places, &[Server::Redis])?)
        }
        Bench::Zookeeper => {
            command.args(engine("zookeeper"));
            Some(Servers::start(places, &[Server::Zookeeper])?)
        }
        Bench::Core => {
            // By pattern: `--benches` would also run the unit tests, which do not know a benchmark's arguments.
            command.args(["-p", "ylock-core", "--all-features", "--bench", "*"]);
            None
        }
        Bench::Thesis => {
            command = cargo::cargo();
            command.args(["run", "--release", "-p", "ylock-benchmark"]);
            wants_real_points(arguments).then(|| Servers::start(places, &[Server::Cassandra])).transpose()?
        }
    };
    command.arg("--").args(arguments);
    if let Some(servers) = &servers {
        command.envs(servers.environment()?);
    }
    let status = child::run(&mut command, None)?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns whether the thesis's benchmark will ask real servers, by its own options.
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
