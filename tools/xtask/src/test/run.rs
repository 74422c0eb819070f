//! Builds the test programs, and runs those of a pass.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::Instant,
};

use anyhow::{Result, bail};
use serde_json::Value;

use super::{
    joined,
    output::Target,
    plan::{Pass, Plan, Programs, What},
    printer::{Part, Printer},
};
use crate::{cargo, child, interrupt, store::Variable};

/// A program of tests.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Program {
    pub(crate) target: Target,
    pub(crate) path: PathBuf,
    /// The folder of the crate, in which cargo runs tests as well.
    folder: PathBuf,
}

impl Program {
    /// Returns the target by the name of the file, which tells it from all others.
    pub(crate) fn named(&self) -> Option<(String, Target)> {
        Some((self.path.file_name()?.to_string_lossy().into_owned(), self.target.clone()))
    }
}

/// Builds everything. The programs are run without cargo then, which runs one at a time.
pub(crate) fn build(plan: &Plan, limit: Instant) -> Result<Vec<Program>> {
    let mut command = cargo::cargo();
    command.args(["test", "--no-run", "--message-format=json-render-diagnostics"]).args(plan.build());
    let mut messages = Vec::new();
    let status = child::stdout_into(&mut command, Some(limit), |bytes| messages.extend_from_slice(bytes))?;
    if !status.success() {
        bail!("the tests do not compile");
    }
    let messages = messages.split(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
    let mut programs: Vec<_> = messages.filter_map(|message: Value| program(plan, &message)).collect();
    // They come in the order in which they were built.
    programs.sort();
    let is_built = |target: &Target| programs.iter().any(|program| program.target == *target);
    let missing = plan.targets().find(|target| target.name != Target::UNIT_TESTS && !is_built(target));
    if let Some(Target { package, name }) = missing {
        bail!("the tests {name} of {package} were not built");
    }
    Ok(programs)
}

fn program(plan: &Plan, message: &Value) -> Option<Program> {
    let path = PathBuf::from(message["executable"].as_str()?);
    let is_test = message["profile"]["test"].as_bool()?;
    let package = plan.package_named(message["package_id"].as_str()?).filter(|_| is_test)?;
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
    let is_test_file = message["target"]["kind"].as_array()?.iter().any(|kind| kind == "test");
    let name = if is_test_file { message["target"]["name"].as_str()? } else { Target::UNIT_TESTS };
    Some(Program { target: Target::of(package, name), path, folder })
}

/// Runs a pass. Returns what went wrong, if anything did.
pub(crate) fn run(
    pass: &Pass,
    programs: &[Program],
    variables: &[Variable],
    limit: Instant,
    printer: &Printer,
) -> Vec<String> {
    match &pass.programs {
        Programs::OfCargo(arguments) => {
            let mut command = cargo::cargo();
            command.args(["test", "--no-fail-fast"]).args(arguments);
            let shown = cargo::shown(&command);
            run_one(pass, &shown, command, variables, limit, printer).into_iter().collect()
        }
        Programs::These { targets, at_once } => {
            let chosen: Vec<_> = targets
                .iter()
                .flat_map(|target| programs.iter().filter(move |program| program.target == *target))
                .collect();
            let next = AtomicUsize::new(0);
            let work = || {
                let mut problems = Vec::new();
                while let Some(program) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
                    problems.extend(run_program(pass, program, variables, limit, printer));
                }
                problems
            };
            thread::scope(|threads| {
                let workers: Vec<_> = (0..*at_once).map(|_| threads.spawn(work)).collect();
                workers.into_iter().flat_map(joined).collect()
            })
        }
    }
}

fn run_program(
    pass: &Pass,
    program: &Program,
    variables: &[Variable],
    limit: Instant,
    printer: &Printer,
) -> Option<String> {
    let mut command = in_its_turn(pass, program.path.as_os_str());
    command.current_dir(&program.folder).args(&pass.libtest);
    let Target { package, name } = &program.target;
    let shown = format!("{package}  {name} ({})", program.path.display());
    run_one(pass, &shown, command, variables, limit, printer)
}

/// Returns the command of a program: what only computes takes the time that all others leave.
fn in_its_turn(pass: &Pass, program: &OsStr) -> Command {
    if pass.what != What::Computing {
        return cargo::in_workspace(program);
    }
    let mut command = cargo::in_workspace("nice");
    command.args(["-n", "19"]).arg(program);
    command
}

/// Runs one command, shown by these words. Returns what went wrong, if anything did; of what was not begun after Ctrl-C nothing is said.
fn run_one(
    pass: &Pass,
    shown: &str,
    mut command: Command,
    variables: &[Variable],
    limit: Instant,
    printer: &Printer,
) -> Option<String> {
    if interrupt::happened() {
        return None;
    }
    if Instant::now() > limit {
        return Some(format!("no time was left for {shown}, of the {}", pass.what));
    }
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    // Colours would hide the words from the reader.
    command.env("CARGO_TERM_COLOR", "never");
    let part = Part::begin(printer, pass.what == What::Computing);
    part.print(format!("\n     Running {shown}\n").as_bytes());
    match child::run_into(&mut command, Some(limit), |bytes| part.print(bytes)) {
        Ok(status) if status.success() => None,
        Ok(status) => Some(format!("{shown}, of the {}, ended with {status}", pass.what)),
        Err(error) => Some(format!("{shown}, of the {}: {error:#}", pass.what)),
    }
}
