//! Breaks the lines that decide, one at a time, and looks whether a test notices: `cargo xtask mutants`.
//!
//! `cargo-mutants` makes the mistakes. Each is tried with the tests that need no server and 300 seeds of the engine in the simulation. The
//! scripts of Redis are Lua, of which it knows nothing: their mistakes are a list in `tools/simulation/tests/variants`.

mod outcomes;
mod plan;

use std::{
    collections::BTreeMap,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use anyhow::{Context, Result, bail, ensure};

use self::{
    outcomes::{Outcome, Outcomes},
    plan::{PLANS, Plan, Stage},
};
use crate::{cargo, child};

/// The memory that one process may have, in bytes.
const MEMORY: u64 = 8 << 30;
const VERSION: &str = "27.1.0";
// The ends of the tool.
const NOTHING_FOUND: i32 = 0;
const SURVIVORS_FOUND: i32 = 2;
const A_TEST_DID_NOT_END: i32 = 3;
const FAILS_WITHOUT_A_MUTANT: i32 = 4;
/// The mutants that no test notices, each with the schedule that was considered.
const SURVIVORS: &str = "tools/xtask/src/mutants/survivors.md";

/// Tries the mutants of these files, or of all that decide. `again` leaves out those that the last run has noticed.
pub(crate) fn mutants(files: &[String], again: bool) -> Result<ExitCode> {
    let tool = tool()?;
    let mut all = Outcomes::default();
    for (plan, files) in chosen(files)? {
        let output = cargo::workspace().join("target/mutants").join(plan.name);
        std::fs::create_dir_all(&output)?;
        for stage in [Stage::Own, Stage::Seeds] {
            let mut command = run(&tool, plan, &files, &output, stage);
            // Leaves out what was noticed before, by the lists that each run writes.
            command.args((again || matches!(stage, Stage::Seeds)).then_some("--iterate"));
            let status = child::run(&mut command, None)?;
            if !matches!(status.code(), Some(NOTHING_FOUND | SURVIVORS_FOUND | A_TEST_DID_NOT_END)) {
                // The plans before it may have taken hours.
                report(&all)?;
                let fails = status.code() == Some(FAILS_WITHOUT_A_MUTANT);
                let why = if fails { ": a test fails without any mutant" } else { "" };
                bail!("cargo-mutants ended with {status} in {}{why}", plan.folder);
            }
            let lists = output.join("mutants.out");
            let outcomes = lists.join("outcomes.json");
            if status.success() && !outcomes.is_file() {
                // All was noticed before, and nothing is left to try.
                continue;
            }
            all.add(Outcomes::read(&outcomes)?);
            if matches!(stage, Stage::Own) {
                leave_out_what_hung(&lists)?;
            }
        }
    }
    report(&all)
}

/// Makes the next stage leave out the mutants under which a test did not end: it is noticed, and would not end there either.
fn leave_out_what_hung(lists: &Path) -> Result<()> {
    let hung = std::fs::read(lists.join("timeout.txt"))?;
    let mut noticed = std::fs::OpenOptions::new().append(true).open(lists.join("caught.txt"))?;
    Ok(noticed.write_all(&hung)?)
}

/// Returns the files of each plan.
fn chosen(files: &[String]) -> Result<Vec<(&'static Plan, Vec<String>)>> {
    let mut chosen: BTreeMap<&str, (&Plan, Vec<String>)> = BTreeMap::new();
    let all = || PLANS.iter().flat_map(|plan| plan.files().map(move |file| (plan, file)));
    for file in files {
        let plan = PLANS.iter().find(|plan| file.starts_with(plan.folder));
        let plan = plan.with_context(|| format!("no tests are known for {file}"))?;
        chosen.entry(plan.name).or_insert((plan, Vec::new())).1.push(file.clone());
    }
    if files.is_empty() {
        all().for_each(|(plan, file)| chosen.entry(plan.name).or_insert((plan, Vec::new())).1.push(file));
    }
    for (_, files) in chosen.values() {
        for file in files {
            ensure!(cargo::workspace().join(file).is_file(), "{file} is not there");
        }
    }
    Ok(chosen.into_values().collect())
}

fn run(tool: &Path, plan: &Plan, files: &[String], output: &Path, stage: Stage) -> Command {
    let mut command = cargo::in_workspace("prlimit");
    // A mistake may make a loop that takes all memory there is.
    command.arg(format!("--as={MEMORY}")).arg(tool);
    command.args(["mutants", "--workspace", "--no-shuffle", "--colors=never"]);
    // As long as five times the tests without a mistake, but not so short that a busy machine makes one look noticed.
    command.arg("--timeout-multiplier=5").arg(format!("--minimum-test-timeout={}", stage.shortest_timeout()));
    command.arg("--output").arg(output);
    command.args(files.iter().flat_map(|file| ["--file", file]));
    // For the build as well, which would otherwise be one of all tests of the crate alone.
    command.args(plan.arguments(stage).iter().map(|argument| format!("--cargo-arg={argument}")));
    command.env("YLOCK_MUTANTS_OF", plan.subjects);
    // One after the other: two jobs have one folder of builds, in which each would find, and test, what the other has built.
    command.arg("--jobs=1").env_remove("CARGO_MUTANTS_JOBS");
    // Not that of the workspace: there everything would be built again afterwards.
    command.env("CARGO_TARGET_DIR", cargo::workspace().join("target/mutants/build"));
    // A mutant changes one function: a build of two seconds instead of twenty. Optimized as far as that costs no time: twice as far, a build
    // takes five seconds, and not at all, the seeds take twice as long.
    command.env("CARGO_INCREMENTAL", "1").env("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
    // Most tests wait for leases to end.
    command.env("RUST_TEST_THREADS", "8");
    // A mutant is not debugged.
    command.env("CARGO_PROFILE_DEV_DEBUG", "0");
    command
}

/// Finds the tool, or installs it below `target`.
fn tool() -> Result<PathBuf> {
    let root = cargo::workspace().join("target/tools");
    let program = root.join("bin/cargo-mutants");
    if !program.is_file() {
        let mut install = cargo::cargo();
        install.args(["install", "--locked", "cargo-mutants", "--version", VERSION, "--root"]).arg(&root);
        ensure!(child::run(&mut install, None)?.success(), "cargo-mutants cannot be installed");
    }
    Ok(program)
}

/// Shows the outcomes. A mutant that no test notices must be known, with what was thought of it.
fn report(all: &Outcomes) -> Result<ExitCode> {
    println!("{all}");
    let known = std::fs::read_to_string(cargo::workspace().join(SURVIVORS))?;
    let is_known = |name: &str| known.contains(&format!("`{}`", outcomes::without_line(name)));
    let new: Vec<_> = all.of(Outcome::Survived).filter(|name| !is_known(name)).collect();
    new.iter().for_each(|name| println!("no test notices: {name}"));
    // Noticed, unless the machine was too busy.
    all.of(Outcome::TimedOut).for_each(|name| println!("a test did not end: {name}"));
    Ok(if new.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
