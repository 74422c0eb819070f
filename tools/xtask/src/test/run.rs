//! Builds the test programs, and runs them.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use anyhow::{Result, bail};
use serde_json::Value;

use super::{
    output::Target,
    plan::{Job, Of, Plan, What},
    printer::{Part, Printer},
    slow::Slow,
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
    let missing = plan.targets().iter().find(|target| !is_built(target));
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

/// Runs a job. Returns what went wrong; of what was not begun after Ctrl-C nothing is said.
pub(crate) fn run(
    job: &Job,
    programs: &[Program],
    variables: &[Variable],
    limit: Instant,
    printer: &Printer,
) -> Vec<String> {
    let commands = match &job.program {
        Of::Cargo(arguments) => vec![docs(arguments)],
        Of::Target(target) => of_target(target, programs).map(|program| test_program(job, program)).collect(),
    };
    let run = |(shown, command): (String, Command)| run_one(job, &shown, command, variables, limit, printer);
    commands.into_iter().filter_map(run).collect()
}

/// Returns the programs of a target: the unit tests of a crate may be two, of its library and of its program.
fn of_target<'a>(target: &'a Target, programs: &'a [Program]) -> impl Iterator<Item = &'a Program> {
    programs.iter().filter(move |program| program.target == *target)
}

/// Runs one command of a job, shown by these words.
fn run_one(
    job: &Job,
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
        return Some(format!("no time was left for {shown}, of the {}", job.what));
    }
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    // Colours would hide the words from the reader.
    command.env("CARGO_TERM_COLOR", "never");
    let part = Part::begin(printer, job.what == What::Computing);
    part.print(format!("\n     Running {shown}\n").as_bytes());
    let mut slow = Slow::default();
    let sink = |bytes: &[u8]| {
        slow.feed(bytes, |test| eprintln!("SLOW  {test}, of {shown}: it runs for over a minute"));
        part.print(bytes);
    };
    match child::run_into(&mut command, Some(limit), sink) {
        Ok(status) if status.success() => None,
        Ok(status) => Some(format!("{shown}, of the {}, ended with {status}", job.what)),
        Err(error) => Some(format!("{shown}, of the {}: {error:#}", job.what)),
    }
}

/// Returns the command that runs the examples of the documentation, and how it is shown.
fn docs(arguments: &[String]) -> (String, Command) {
    let mut command = cargo::cargo();
    command.args(["test", "--no-fail-fast"]).args(arguments);
    (cargo::shown(&command), command)
}

/// Returns the command of a program, and how it is shown. What only computes takes the time that all others leave.
fn test_program(job: &Job, program: &Program) -> (String, Command) {
    let mut command = if job.what == What::Computing {
        let mut nice = cargo::in_workspace("nice");
        nice.args(["-n", "19"]).arg(&program.path);
        nice
    } else {
        cargo::in_workspace(&program.path)
    };
    command.current_dir(&program.folder).args(&job.libtest);
    let Target { package, name } = &program.target;
    (format!("{package}  {name} ({})", program.path.display()), command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_tests_of_a_library_and_of_its_program_are_both_run() {
        let program = |name: &str, path: &str| Program {
            target: Target::of("ylock-simulation", name),
            path: path.into(),
            folder: PathBuf::new(),
        };
        let programs =
            [program(Target::UNIT_TESTS, "bin"), program(Target::UNIT_TESTS, "lib"), program("seeds", "x")];
        let target = Target::of("ylock-simulation", Target::UNIT_TESTS);
        let paths: Vec<_> = of_target(&target, &programs).map(|program| program.path.as_os_str()).collect();
        assert_eq!(paths, ["bin", "lib"]);
    }
}
