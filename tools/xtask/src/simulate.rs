//! Runs the simulation: `cargo xtask simulate`.

use std::process::ExitCode;

use anyhow::Result;

use crate::{cargo, child};

pub(crate) fn simulate(arguments: &[String]) -> Result<ExitCode> {
    let mut command = cargo::cargo();
    command.args(["run", "--quiet", "--release", "-p", "ylock-simulation", "--"]).args(arguments);
    let status = child::run(&mut command, None)?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
