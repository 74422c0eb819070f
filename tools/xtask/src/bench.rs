//! Runs benchmarks: `cargo xtask bench`.

use std::process::ExitCode;

use anyhow::Result;

use crate::{
    cargo, child,
    engine::{Bench, Engine},
    places::Places,
    servers::Servers,
};

pub(crate) fn bench(
    places: &Places,
    (engine, bench): (&'static Engine, &Bench),
    arguments: &[String],
) -> Result<ExitCode> {
    let mut command = cargo::cargo();
    command.args(bench.command.split(' ')).arg("--").args(arguments);
    let wants_servers = engine.has_servers() && (bench.wants_servers)(arguments);
    let servers = wants_servers.then(|| Servers::start(places, &[engine])).transpose()?;
    if let Some(servers) = &servers {
        command.envs(servers.environment()?);
    }
    let status = child::run(&mut command, None)?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
