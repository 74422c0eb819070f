//! Calls `cargo test`.

use std::{
    io::{Write, stdout},
    path::PathBuf,
    process::{Command, ExitStatus},
    time::Instant,
};

use anyhow::{Result, bail};
use serde_json::Value;

use super::{
    output::{Executables, Reader, Target},
    plan::{Pass, Plan},
};
use crate::{cargo, child};

/// Builds everything, and learns which executable belongs to which crate: `cargo test` itself prints only file names.
pub(crate) fn build(plan: &Plan, limit: Instant) -> Result<Executables> {
    let mut command = cargo::cargo();
    command.args(["test", "--no-run", "--message-format=json-render-diagnostics"]).args(plan.build());
    let mut messages = Vec::new();
    let status = child::stdout_into(&mut command, Some(limit), |bytes| messages.extend_from_slice(bytes))?;
    if !status.success() {
        bail!("the tests do not compile");
    }
    let messages = messages.split(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
    Ok(messages.filter_map(|message: Value| executable(plan, &message)).collect())
}

fn executable(plan: &Plan, message: &Value) -> Option<(String, Target)> {
    let path = PathBuf::from(message["executable"].as_str()?);
    let file = path.file_name()?.to_string_lossy().into_owned();
    let package = plan.package_named(message["package_id"].as_str()?)?;
    let is_test_file = message["target"]["kind"].as_array()?.iter().any(|kind| kind == "test");
    let name = if is_test_file { message["target"]["name"].as_str()? } else { "unit tests" };
    let target = Target { package: package.to_owned(), name: name.to_owned() };
    Some((file, target))
}

/// Runs a pass, shows its output as it comes and reads along. Returns what went wrong, if anything did.
pub(crate) fn run(
    pass: &Pass,
    variables: &[(&str, String)],
    limit: Instant,
    reader: &mut Reader,
) -> Result<Vec<String>> {
    let mut command = prepared(cargo::cargo(), pass, variables);
    eprintln!("\n{}", cargo::shown(&command));
    let status = child::run_into(&mut command, Some(limit), |bytes| {
        reader.feed(bytes);
        show(bytes);
    })?;
    Ok(problems(pass, status))
}

/// Runs a pass in the time that all others leave, and keeps what it prints for later. Returns what went wrong, if anything did.
pub(crate) fn run_beside(
    pass: &Pass,
    variables: &[(&str, String)],
    limit: Instant,
    printed: &mut Vec<u8>,
) -> Result<Vec<String>> {
    let mut nice = cargo::in_workspace("nice");
    nice.args(["-n", "19"]).arg(cargo::cargo().get_program());
    let mut command = prepared(nice, pass, variables);
    let status = child::run_into(&mut command, Some(limit), |bytes| printed.extend_from_slice(bytes))?;
    Ok(problems(pass, status))
}

/// Shows what was printed. The reader of our output may be gone, which is no reason to stop.
pub(crate) fn show(bytes: &[u8]) {
    let _ = stdout().write_all(bytes).and_then(|()| stdout().flush());
}

fn prepared(mut cargo: Command, pass: &Pass, variables: &[(&str, String)]) -> Command {
    cargo.args(["test", "--no-fail-fast"]).args(&pass.cargo).arg("--").args(&pass.libtest);
    cargo.envs(variables.iter().map(|(name, value)| (name, value)));
    // Colours would hide the words from the reader.
    cargo.env("CARGO_TERM_COLOR", "never");
    cargo
}

fn problems(pass: &Pass, status: ExitStatus) -> Vec<String> {
    let failed = || format!("`cargo test` of the {} ended with {status}", pass.what);
    if status.success() { vec![] } else { vec![failed()] }
}
