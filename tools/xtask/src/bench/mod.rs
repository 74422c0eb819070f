//! Runs benchmarks: `cargo xtask bench`.

mod against;
mod figures;
mod peers;

use std::process::ExitCode;

use anyhow::Result;

use self::against::Programs;
use crate::{
    cargo, child,
    engine::{Bench, Engine},
    places::Places,
    servers::Servers,
};

pub(crate) fn bench(
    places: &Places,
    (engine, bench): (&'static Engine, &Bench),
    against: Option<&str>,
    arguments: &[String],
) -> Result<ExitCode> {
    // Before the servers start, which would run beside the build.
    let programs = against.map(|commit| Programs::build(bench, commit)).transpose()?;
    let mut command = cargo::cargo();
    command.args(bench.command.split(' ')).arg("--").args(arguments);
    let engines = bench.engines(engine, arguments);
    let servers = (!engines.is_empty()).then(|| Servers::start(places, &engines)).transpose()?;
    let variables = servers.as_ref().map(Servers::environment).transpose()?.unwrap_or_default();
    if let Some(programs) = programs {
        programs.compare(arguments, &variables)?;
        return Ok(ExitCode::SUCCESS);
    }
    command.envs(variables);
    if (bench.wants_peers)(arguments) {
        command.envs(peers::build()?);
    }
    let status = child::run(&mut command, None)?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
